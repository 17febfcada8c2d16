package headgate;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.api.java.UDF3;

/**
 * Takes one value out of a JSON object without a full parse, and only if the whole record is proven to be well formed.
 *
 * <p>An empty answer says nothing: the full parse decides. So whatever is unusual ends here, and what is answered is what a
 * full parse would have found. The path is its keys with a zero byte between them; an empty one asks only for the proof, and
 * the answer is then an opening brace. A fraction is answered only where numbers are wanted: as text, a full parse may write
 * it in another way.
 */
public final class QuickJson implements UDF3<byte[], byte[], Boolean, String> {
    private static final int DEPTH_MAX = 16;
    private static final int NUMBER_MAX = 300;
    // So long a full parse gives a number back unchanged; a fraction with its point.
    private static final int WHOLE_MAX = 18;
    private static final int FRACTION_MAX = 16;
    private static final String UNDECIDED = "";

    @Override
    public String call(byte[] record, byte[] path, Boolean isNumber) {
        return record == null ? UNDECIDED : new Scan(record, path, isNumber).answer();
    }

    /** One record, from its first byte to its last. Every method leaves `at` behind what it read, or -1: undecided. */
    private static final class Scan {
        private final byte[] record;
        private final byte[] path;
        private final boolean isNumber;
        private int foundFrom = -1;
        private int foundTo = -1;

        Scan(byte[] record, byte[] path, boolean isNumber) {
            this.record = record;
            this.path = path;
            this.isNumber = isNumber;
        }

        String answer() {
            int at = object(0, 0, 0);
            if (at < 0 || blank(at) != record.length) {
                return UNDECIDED;
            }
            if (path.length == 0) {
                return "{";
            }
            return foundTo < 0 ? UNDECIDED : new String(record, foundFrom, foundTo - foundFrom, StandardCharsets.UTF_8);
        }

        /** `key`: where in the path the key is that is looked for in this object; behind the path: none. */
        private int object(int at, int key, int depth) {
            if (depth > DEPTH_MAX || byteAt(at) != '{') {
                return -1;
            }
            at = blank(at + 1);
            if (byteAt(at) == '}') {
                return at + 1;
            }
            boolean isWanted = key < path.length;
            int keyEnd = isWanted ? keyEnd(key) : key;
            while (true) {
                int from = at + 1;
                at = plainString(at);
                if (at < 0) {
                    return -1;
                }
                boolean isIt = isWanted && isKey(from, at - 1, key, keyEnd);
                at = blank(at);
                if (byteAt(at) != ':') {
                    return -1;
                }
                at = blank(at + 1);
                if (!isIt) {
                    at = value(at, depth);
                } else if (keyEnd == path.length) {
                    at = found(at);
                    isWanted = false;
                } else {
                    at = object(at, keyEnd + 1, depth + 1);
                    isWanted = false;
                    if (foundTo < 0) {
                        return -1;
                    }
                }
                if (at < 0) {
                    return -1;
                }
                at = blank(at);
                int next = byteAt(at);
                if (next == '}') {
                    return at + 1;
                }
                if (next != ',') {
                    return -1;
                }
                at = blank(at + 1);
            }
        }

        private int keyEnd(int key) {
            int end = key;
            while (end < path.length && path[end] != 0) {
                end++;
            }
            return end;
        }

        private boolean isKey(int from, int to, int key, int keyEnd) {
            if (to - from != keyEnd - key) {
                return false;
            }
            for (int n = 0; n < to - from; n++) {
                if (record[from + n] != path[key + n]) {
                    return false;
                }
            }
            return true;
        }

        /** The value that is looked for: a string that is neither empty nor escaped, or a number. */
        private int found(int at) {
            int end;
            if (byteAt(at) == '"') {
                end = plainString(at);
                if (end < 0 || end - at == 2) {
                    return -1;
                }
                foundFrom = at + 1;
                foundTo = end - 1;
                return end;
            }
            end = number(at);
            if (end < 0 || !isExact(at, end)) {
                return -1;
            }
            foundFrom = at;
            foundTo = end;
            return end;
        }

        private boolean isExact(int from, int to) {
            boolean isWhole = true;
            for (int n = from; n < to; n++) {
                byte one = record[n];
                if (one == 'e' || one == 'E') {
                    return false;
                }
                isWhole &= one != '.';
            }
            boolean isNegative = record[from] == '-';
            int size = to - (isNegative ? from + 1 : from);
            if (isNegative && isWhole && record[from + 1] == '0') {
                return false; // a full parse knows no zero below zero
            }
            return isWhole ? size <= WHOLE_MAX : isNumber && size <= FRACTION_MAX;
        }

        private int value(int at, int depth) {
            switch (byteAt(at)) {
                case '"':
                    return string(at);
                case '{':
                    return object(at, path.length, depth + 1);
                case '[':
                    return array(at, depth + 1);
                case 't':
                    return word(at, "true");
                case 'f':
                    return word(at, "false");
                case 'n':
                    return word(at, "null");
                default:
                    return number(at);
            }
        }

        private int array(int at, int depth) {
            if (depth > DEPTH_MAX) {
                return -1;
            }
            at = blank(at + 1);
            if (byteAt(at) == ']') {
                return at + 1;
            }
            while (true) {
                at = value(at, depth);
                if (at < 0) {
                    return -1;
                }
                at = blank(at);
                int next = byteAt(at);
                if (next == ']') {
                    return at + 1;
                }
                if (next != ',') {
                    return -1;
                }
                at = blank(at + 1);
            }
        }

        private int word(int at, String word) {
            for (int n = 0; n < word.length(); n++) {
                if (byteAt(at + n) != word.charAt(n)) {
                    return -1;
                }
            }
            return at + word.length();
        }

        private int number(int at) {
            int from = at;
            if (byteAt(at) == '-') {
                at++;
            }
            int digits = digits(at);
            if (digits < 0 || (record[at] == '0' && digits > at + 1)) {
                return -1;
            }
            at = digits;
            if (byteAt(at) == '.') {
                at = digits(at + 1);
                if (at < 0) {
                    return -1;
                }
            }
            if (byteAt(at) == 'e' || byteAt(at) == 'E') {
                at++;
                if (byteAt(at) == '+' || byteAt(at) == '-') {
                    at++;
                }
                at = digits(at);
            }
            return at - from > NUMBER_MAX ? -1 : at;
        }

        /** At least one. */
        private int digits(int at) {
            int from = at;
            while (at < record.length && record[at] >= '0' && record[at] <= '9') {
                at++;
            }
            return at == from ? -1 : at;
        }

        /** Without escapes. */
        private int plainString(int at) {
            if (byteAt(at) != '"') {
                return -1;
            }
            at++;
            while (at < record.length) {
                byte one = record[at];
                if (one == '"') {
                    return at + 1;
                }
                if (one == '\\') {
                    return -1;
                }
                if (one >= ' ') {
                    at++;
                    continue;
                }
                at = letter(at);
                if (at < 0) {
                    return -1;
                }
            }
            return -1;
        }

        private int string(int at) {
            at++;
            while (at < record.length) {
                byte one = record[at];
                if (one == '"') {
                    return at + 1;
                }
                if (one == '\\') {
                    at = escape(at + 1);
                } else if (one >= ' ') {
                    at++;
                } else {
                    at = letter(at);
                }
                if (at < 0) {
                    return -1;
                }
            }
            return -1;
        }

        private int escape(int at) {
            switch (byteAt(at)) {
                case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
                    return at + 1;
                case 'u':
                    for (int n = 1; n <= 4; n++) {
                        if (Character.digit(byteAt(at + n), 16) < 0) {
                            return -1;
                        }
                    }
                    return at + 5;
                default:
                    return -1;
            }
        }

        /** A letter of several bytes in valid UTF-8: neither too long, nor half a pair, nor beyond the last one. */
        private int letter(int at) {
            int first = byteAt(at);
            if (first >= 0xC2 && first <= 0xDF) {
                return isNext(at + 1, 0x80, 0xBF) ? at + 2 : -1;
            }
            if (first >= 0xE0 && first <= 0xEF) {
                int low = first == 0xE0 ? 0xA0 : 0x80;
                int high = first == 0xED ? 0x9F : 0xBF;
                return isNext(at + 1, low, high) && isNext(at + 2, 0x80, 0xBF) ? at + 3 : -1;
            }
            if (first >= 0xF0 && first <= 0xF4) {
                int low = first == 0xF0 ? 0x90 : 0x80;
                int high = first == 0xF4 ? 0x8F : 0xBF;
                boolean isIt = isNext(at + 1, low, high) && isNext(at + 2, 0x80, 0xBF) && isNext(at + 3, 0x80, 0xBF);
                return isIt ? at + 4 : -1;
            }
            return -1;
        }

        private boolean isNext(int at, int low, int high) {
            int one = byteAt(at);
            return one >= low && one <= high;
        }

        private int blank(int at) {
            while (at < record.length && (record[at] == ' ' || record[at] == '\t')) {
                at++;
            }
            return at;
        }

        /** Behind the end there is nothing, which is no byte. */
        private int byteAt(int at) {
            return at < record.length ? record[at] & 0xFF : -1;
        }
    }
}
