"""S3: the lake in a bucket, which has no rename and no folders.

    publish   a copy by the server that is refused where something has the name, then the staged
              object is deleted. Killed in between it is there twice; a replay deletes the first.
    remove    the uploads under its name are given up (`uploads`), then it is deleted if it is still
              the same object.
    append    written anew with the lines behind it, if it is still the same; else read again.

An acknowledged write lasts: nothing is left to seal or settle. Of many files for one name the
server lets one win; that one file gets only one of two names is by a claim beside it, which goes
with it.

Servers that refuse a copy onto something do it in one request (asked once, by trying). Others do it
in parts: each single publish. Where many are published at once, those of a commit whose record has
its number already, such a server is asked before each copy whether the name is free.
"""

import hashlib
import os
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from headgate.ambient import Ambient
from headgate.errors import Conflict, Corrupt, HeadgateError, Invalid, OutcomeUnknown, Unavailable
from headgate.lake import LIST_MAX, READ_BYTES_MAX, Entry, FileFacts, LakeSettings, Listing, Move
from headgate.lake.bucket import Answer, Bucket, region_of
from headgate.lake.lines import raw_of
from headgate.lake.local import Each, in_turn
from headgate.lake.objects import (
    Found,
    Keys,
    can_be_listed,
    copied_checksum,
    deletion,
    failures_of,
    found_of,
    keys_of,
)
from headgate.lake.paths import (
    STAGING,
    check_file,
    check_folder,
    check_page,
    check_private,
    folder_of,
    join,
    name_of,
)
from headgate.lake.ranges import open_range
from headgate.lake.signing import escaped
from headgate.lake.uploads import PART_BYTES, Refused, copy_in_parts, copy_source, give_up_all

COPY_BYTES_MAX: Final = 5 << 30  # a server copies no more in one request
DELETE_AT_ONCE: Final = 50  # of many that are deleted by several requests at the same time
DELETE_MAX: Final = 1_000  # of one request, as of one page of a listing
REMOVE_PAGES_MAX: Final = 10_000
APPEND_TRIES: Final = 200
APPEND_PAUSE_MS: Final = 20
UNSURE_MAX: Final = 20
APPENDED_MAX: Final = 8  # files whose lines are kept in mind
KNOWN_MAX: Final = 32_768
UPLOAD_AGE_MS: Final = 6 * 3_600_000  # nobody takes so long for one
TIDY_EVERY_MS: Final = 3_600_000
PROBE: Final = f"{STAGING}/_probe"
_CHECKSUMS: Final = {"x-amz-checksum-mode": "ENABLED"}
FROM: Final = "x-amz-meta-headgate-staged"  # of what was published alone: where it was staged
_GONE: Final = frozenset({"NoSuchKey"})
_TAKEN: Final = frozenset({"ExistingObjectIsDirectory", "ObjectParentIsFile"})


class S3Lake:
    """`headgate.lake.Lake`."""

    def __init__(
        self,
        settings: LakeSettings,
        ambient: Ambient,
        each: Each = in_turn,
        *,
        copy_bytes_max: int = COPY_BYTES_MAX,
        part_bytes: int = PART_BYTES,
        upload_age_ms: int = UPLOAD_AGE_MS,
    ) -> None:
        """Raises Invalid."""
        if settings.file_mode is not None or settings.folder_mode is not None or settings.group:
            raise Invalid(
                f"lake {settings.root!r}: files in a bucket have no mode and no group; next: take "
                "file_mode, folder_mode and group out of lake:"
            )
        parts = urlsplit(settings.root)
        self._settings = settings.bucket
        self._bucket = Bucket(parts.netloc, settings.bucket, region_of(settings.bucket), ambient)
        self._above = parts.path.strip("/")
        self._ambient = ambient
        self._each = each
        self._copy_bytes_max = copy_bytes_max
        self._part_bytes = part_bytes
        self._upload_age_ms = upload_age_ms
        self._tidied_ms: int | None = None
        self._alone = threading.Lock()
        self._known: dict[str, Found] = {}  # of what was sealed
        self._appended: dict[str, tuple[str, bytes]] = {}  # ETag and content
        self._refuses_copies: bool | None = None  # onto something; None: nobody asked yet

    @property
    def url(self) -> str:
        return f"s3a://{join(self._bucket.name, self._above)}"

    @property
    def bucket(self) -> Bucket:
        return self._bucket

    def server_ms(self) -> float:
        """By the clock of the server, to the second. Raises Unavailable."""
        options = {"list-type": "2", "max-keys": "1", "prefix": f"{self._key(STAGING)}/"}
        answer = self._bucket.ask("GET", "", options, is_repeatable=True)
        self._expect(answer, "")
        try:
            told = parsedate_to_datetime(answer.headers.get("date", ""))
        except (TypeError, ValueError) as error:
            raise Unavailable(f"{self._bucket.place('')}: tells no time ({error})") from error
        return told.timestamp() * 1000 + 500  # it is cut to the second

    def stage(self, path: str, content: bytes) -> FileFacts:
        key = self._key(check_file(path))
        answer = self._bucket.ask("PUT", key, body=content, is_repeatable=True)
        self._expect(answer, key)
        found = found_of(answer.headers, len(content))
        if found.facts.checksum.startswith("etag:"):  # not every server tells it at once
            return self._there(path).facts
        self._know(path, found)
        return found.facts

    def seal(self, paths: Sequence[str]) -> tuple[FileFacts, ...]:
        for path in paths:
            check_file(path)
        return tuple(found.facts for found in self._each(self._there, list(paths)))

    def facts(self, path: str) -> FileFacts | None:
        check_file(path)
        found = self._look(path)
        if found is None:
            self._refuse_folder(path)
        return None if found is None else found.facts

    def publish(self, staged: str, published: str) -> None:
        check_file(staged)
        target = self._key(check_file(published))
        if staged == published:
            raise Invalid(f"{published}: is staged under the name that it is to be published under")
        found = self._there(staged)
        claim, is_first = self._claim(staged, published)
        try:
            self._copy(staged, found, target)
        except OutcomeUnknown:
            if self._is_folder(published):  # some servers fail at that, and do not say why
                self._delete_quietly([claim])
                raise Conflict(
                    f"{self._bucket.place(target)}: is a folder, and nothing was done"
                ) from None
            raise
        except Refused as refused:
            refusal = self._refusal(refused.answer, staged, published)
            if is_first and not self._is_from(staged, published):  # else who did it clears up
                self._delete_quietly([claim])
            raise refusal from refused
        self._forget(staged)
        try:
            self._delete([self._key(staged), claim])
        except (Unavailable, OutcomeUnknown) as error:
            raise OutcomeUnknown(
                f"{self._bucket.place(target)}: is published, and may still be staged as well "
                f"({error}); next: do it again; that takes the first away"
            ) from error

    def _is_from(self, staged: str, published: str) -> bool:
        """Whether this very staged file got the name, by whoever was faster."""
        answer = self._bucket.ask("HEAD", self._key(published), is_repeatable=True)
        return answer.headers.get(FROM) == escaped(staged)

    def _copy(self, staged: str, found: Found, target: str) -> Answer:
        """Never onto something. Raises Refused, Unavailable, OutcomeUnknown."""
        key, origin = self._key(staged), {FROM: escaped(staged)}
        size_bytes = found.facts.size_bytes
        if size_bytes > self._copy_bytes_max or not self._is_refusing():
            part_bytes = self._part_bytes if size_bytes > self._copy_bytes_max else size_bytes
            return copy_in_parts(
                self._bucket, key, found.etag, size_bytes, target, origin, max(part_bytes, 1)
            )
        told = {"x-amz-metadata-directive": "REPLACE", **origin}
        return self._copy_at_once(key, found, target, {"if-none-match": "*", **told})

    def _copy_at_once(
        self, key: str, found: Found, target: str, condition: dict[str, str]
    ) -> Answer:
        headers = {
            "x-amz-copy-source": copy_source(self._bucket, key),
            "x-amz-copy-source-if-match": found.etag,
            **condition,
        }
        answer = self._bucket.ask("PUT", target, headers=headers, is_repeatable=not condition)
        if not answer.is_good:
            raise Refused(answer)
        return answer

    def _is_refusing(self) -> bool:
        """Whether this server refuses a copy onto something: some overwrite, and say nothing."""
        if self._refuses_copies is None:
            first, second = (self._key(f"{PROBE}/{self._ambient.new_id()}") for _ in "ab")
            try:
                for key in (first, second):
                    self._expect(self._bucket.ask("PUT", key, is_repeatable=True), key)
                headers = {
                    "x-amz-copy-source": copy_source(self._bucket, first),
                    "if-none-match": "*",
                }
                answer = self._bucket.ask("PUT", second, headers=headers, is_repeatable=True)
                self._refuses_copies = answer.status == 412
            finally:
                self._delete_quietly([first, second])
        return self._refuses_copies

    def _claim(self, staged: str, published: str) -> tuple[str, bool]:
        """The key of a note beside the staged file, which of two names it gets; and whether it is
        ours. Raises Conflict."""
        name = hashlib.sha256(name_of(staged).encode()).hexdigest()[:32]
        key = self._key(join(folder_of(staged), f".to-{name}"))
        wanted = published.encode()
        answer = self._bucket.ask(
            "PUT", key, headers={"if-none-match": "*"}, body=wanted, is_repeatable=False
        )
        if answer.is_good:
            return key, True
        if answer.status not in (409, 412):
            self._expect(answer, key)
        noted = self._bucket.ask("GET", key, is_repeatable=True)
        if noted.status == 200 and noted.body != wanted:
            raise Conflict(
                f"{staged}: is being published as {noted.body.decode('utf-8', 'replace')}, and not "
                f"as {published}; nothing was done; next: see who publishes it: headgate audit"
            )
        return key, False

    def _refusal(self, answer: Answer, staged: str, published: str) -> HeadgateError:
        """Of a copy; nothing was done."""
        place, origin = (self._bucket.place(self._key(one)) for one in (published, staged))
        if answer.status == 412 and answer.code != "NoSuchUpload":
            found = self._look(published)
            if found is None and self._look(staged) is not None:
                return Unavailable(
                    f"{place}: is taken, says the server, and nothing is there: {origin} changed "
                    "just now, or the bucket keeps versions, and a removed file keeps its name; "
                    "nothing was done; next: try again, or ask this server: headgate doctor lake "
                    f"{self._bucket.place(self._above)}"
                )
            return Conflict(
                f"{place}: something has this name, and nothing was done; next: compare the two, "
                f"{origin} being the other"
            )
        if answer.status == 409 or answer.code in _TAKEN:
            return Conflict(
                f"{place}: something has this name, and nothing was done ({answer.code})"
            )
        if answer.status in (400, 404):
            return self._missing(staged)
        return Unavailable(
            f"{place}: the server refuses the copy ({answer.status} {answer.code}), and nothing "
            "was done; next: try again"
        )

    def publish_all(self, moves: Sequence[Move]) -> tuple[bool, ...]:
        for move in moves:
            check_file(move.staged)
            check_file(move.published)
        done = [False] * len(moves)
        if not moves:
            return ()
        try:
            is_refusing = self._is_refusing()
        except (Unavailable, OutcomeUnknown):
            return tuple(done)

        def copy(move: Move) -> bool:
            try:
                return self._is_copied(move, is_refusing)
            except (Refused, Corrupt, Unavailable, OutcomeUnknown):
                return False

        copied = [number for number, is_it in enumerate(self._each(copy, list(moves))) if is_it]
        with suppress(Unavailable, OutcomeUnknown):
            self._take_away([moves[number] for number in copied])
            left = self._left([moves[number].staged for number in copied])
            for number in copied:
                done[number] = moves[number].staged not in left
        for number in copied:
            self._forget(moves[number].staged)
        return tuple(done)

    def _take_away(self, moves: Sequence[Move]) -> None:
        """What was copied loses its first name. No name in staging is used twice; that of a flag
        is, and who wakes up late must not take the next one's. Raises Unavailable,
        OutcomeUnknown."""
        private = f"{STAGING}/"
        keys = [self._key(one.staged) for one in moves if one.staged.startswith(private)]
        # Not all in one request: the server takes one after the other.
        few = [keys[n : n + DELETE_AT_ONCE] for n in range(0, len(keys), DELETE_AT_ONCE)]
        self._each(self._delete, few)
        for one in moves:
            if not one.staged.startswith(private):
                with suppress(Conflict):  # it is another file by now, and stays
                    self.remove(one.staged, FileFacts(one.size_bytes, one.checksum))

    def _is_copied(self, move: Move, is_refusing: bool) -> bool:
        """Only what is staged as it should be, to where nothing is. Raises Refused, Unavailable,
        OutcomeUnknown."""
        wanted = FileFacts(move.size_bytes, move.checksum)
        key, target = self._key(move.staged), self._key(move.published)
        found = self._known.get(move.staged) or self._look(move.staged)
        if found is None or found.facts != wanted or move.size_bytes > self._copy_bytes_max:
            return False  # a large one takes its time, alone
        if is_refusing:
            answer = self._copy_at_once(key, found, target, {"if-none-match": "*"})
        else:
            if self._look(move.published) is not None:
                return False
            answer = self._copy_at_once(key, found, target, {})
        told = copied_checksum(answer.body)
        if not told:
            there = self._look(move.published)
            return there is not None and there.facts == wanted
        return told == wanted.checksum

    def _left(self, paths: Sequence[str]) -> set[str]:
        """Which of these are still there: asked of the folder that they have in common, where only
        what is left of this attempt lies. Raises Unavailable."""
        common = os.path.commonpath([folder_of(path) for path in paths]) if paths else ""
        if common.count("/") <= STAGING.count("/"):
            return {path for path in paths if self._look(path) is not None}
        left: set[str] = set()
        for keys in self._pages(f"{self._key(common)}/"):
            left.update(self._path(key) for key in keys.sizes_bytes)
        return left

    def settle(self, folders: Sequence[str]) -> None:
        """What was acknowledged lasts. Now and then it is looked for uploads that nobody will
        complete any more: each holds room, and is not seen by anybody."""
        for folder in folders:
            check_folder(folder)
        now_ms = self._ambient.monotonic_ms()
        with self._alone:
            is_due = self._tidied_ms is None or now_ms - self._tidied_ms > TIDY_EVERY_MS
            if is_due:
                self._tidied_ms = now_ms
        if is_due:
            with suppress(Unavailable, OutcomeUnknown):
                above = f"{self._above}/" if self._above else ""
                give_up_all(self._bucket, above, is_name=False, age_ms=self._upload_age_ms)

    def read(self, path: str, size_bytes_max: int = READ_BYTES_MAX) -> bytes | None:
        key = self._key(check_file(path))
        answer = self._bucket.ask(
            "GET", key, headers={"range": f"bytes=0-{size_bytes_max}"}, is_repeatable=True
        )
        if answer.status == 404:
            return None
        if answer.status == 416:  # it is empty
            return b""
        self._expect(answer, key)
        if len(answer.body) > size_bytes_max:
            raise Invalid(
                f"{self._bucket.place(key)}: has more than {size_bytes_max:,} bytes, and is not "
                "read as a whole; next: see what it is"
            )
        return answer.body

    def open(self, path: str) -> BinaryIO:
        check_file(path)
        found = self._look(path)
        if found is None:
            self._refuse_folder(path)
            raise self._missing(path)
        return open_range(
            self._bucket, self._settings, self._key(path), found.etag, found.facts.size_bytes
        )

    def list(self, folder: str, *, after: str = "", limit: int = LIST_MAX) -> Listing:
        check_folder(folder)
        check_page(limit)
        above = f"{self._key(folder)}/" if self._key(folder) else ""
        found: dict[str, Entry] = {}
        last, is_end = "", True
        for keys in self._pages(
            above, start=after and above + after, delimiter="/", limit=limit + 1
        ):
            for key, size_bytes in keys.sizes_bytes.items():
                name = key.removeprefix(above)
                if name and name > after:  # "" is the sign of a folder that s3a makes
                    found[name] = Entry(join(folder, name), size_bytes)
                    last = max(last, key)
            for one in keys.folders:
                name = one.removeprefix(above).rstrip("/")
                if name > after:
                    found[name] = Entry(join(folder, name), 0, is_folder=True)
                    last = max(last, one)
            if len(found) > limit:
                is_end = not keys.next
                break
        if not is_end:
            self._add_hidden(found, above, last, folder, after)
        names = sorted(found)
        is_last = is_end and len(names) <= limit
        return Listing(
            tuple(found[name] for name in names[:limit]), None if is_last else names[limit - 1]
        )

    def _add_hidden(
        self, found: dict[str, Entry], above: str, last: str, folder: str, after: str
    ) -> None:
        """The server lists the folder `a/` behind the file `a-b`, and its name comes before: those
        that may still come, and belong to this page."""
        name = last.removeprefix(above).rstrip("/")
        for end in range(1, len(name)):
            first = name[:end]
            if name[end] < "/" and first > after and first not in found:
                page = next(self._pages(f"{above}{first}/", limit=1))
                if page.sizes_bytes:
                    found[first] = Entry(join(folder, first), 0, is_folder=True)

    def remove(self, path: str, facts: FileFacts) -> None:
        key = self._key(check_file(path))
        # Before the look: an upload that is completed behind it would be there, and not be seen.
        give_up_all(self._bucket, key, is_name=True)
        found = self._look(path)
        if found is None:
            if self._is_folder(path):
                raise self._another(key)
            return
        if found.facts != facts:
            raise self._another(key)
        self._forget(path)
        answer = self._bucket.ask(
            "DELETE", key, headers={"if-match": found.etag}, is_repeatable=True
        )
        if answer.status == 412:
            raise self._another(key)
        if answer.status != 404:
            self._expect(answer, key)

    def remove_folder(self, folder: str) -> None:
        prefix = f"{self._key(check_private(folder))}/"
        is_touched = False
        for _ in range(REMOVE_PAGES_MAX):
            page = next(self._pages(prefix))
            if not page.sizes_bytes:
                break
            try:
                self._delete(list(page.sizes_bytes))
            except Unavailable as error:
                raise OutcomeUnknown(
                    f"{error}; part of {folder} may be gone. Next: remove it again, without harm"
                ) from error
            is_touched = True
        else:
            raise OutcomeUnknown(f"{folder}: somebody keeps writing there; next: remove it again")
        if not is_touched and self._look(folder) is not None:
            raise Corrupt(f"{self._bucket.place(self._key(folder))}: is a file, not a folder")
        give_up_all(self._bucket, prefix, is_name=False)

    def append(self, path: str, lines: Sequence[str]) -> None:
        key, raw = self._key(check_file(path)), raw_of(lines)
        if not raw:
            return
        with self._alone:
            held = self._appended.pop(path, None)
        unsure: OutcomeUnknown | None = None
        written = b""  # by a request that nobody answered
        for tries in range(APPEND_TRIES):
            etag, before = held or self._content(key)
            if unsure is not None and before.startswith(written):
                return  # it was done
            torn = b"\n" if before and not before.endswith(b"\n") else b""
            content = before + torn + raw
            condition = {"if-match": etag} if etag else {"if-none-match": "*"}
            try:
                answer = self._bucket.ask(
                    "PUT", key, headers=condition, body=content, is_repeatable=False
                )
            except OutcomeUnknown as error:
                # A server that refuses early closes before all is sent, and its answer is lost. The
                # condition holds once: either this is done, or it never will be.
                if tries >= UNSURE_MAX:
                    raise
                unsure, written, held = error, content, None
                continue
            if answer.is_good:
                with self._alone:
                    if len(self._appended) >= APPENDED_MAX:
                        self._appended.clear()
                    self._appended[path] = (answer.headers.get("etag", ""), content)
                return
            if answer.code in _TAKEN or answer.status not in (404, 409, 412):
                self._expect(answer, key)
            held = None  # somebody wrote first
            if tries:
                self._ambient.sleep_ms(APPEND_PAUSE_MS * self._ambient.random())
        if unsure is not None:
            raise unsure
        raise Unavailable(
            f"{self._bucket.place(key)}: others wrote there {APPEND_TRIES} times before us, and "
            "nothing was done; next: try again"
        )

    def _content(self, key: str) -> tuple[str, bytes]:
        """With its ETag; "": there is nothing."""
        answer = self._bucket.ask("GET", key, is_repeatable=True)
        if answer.status == 404:
            return "", b""
        self._expect(answer, key)
        return answer.headers.get("etag", ""), answer.body

    def _key(self, path: str) -> str:
        return join(self._above, path)

    def _path(self, key: str) -> str:
        return key.removeprefix(f"{self._above}/") if self._above else key

    def _look(self, path: str) -> Found | None:
        """None: no object has this name. Raises Unavailable."""
        key = self._key(path)
        answer = self._bucket.ask("HEAD", key, headers=_CHECKSUMS, is_repeatable=True)
        if answer.status == 404:
            return None
        self._expect(answer, key)
        return found_of(answer.headers, int(answer.headers.get("content-length", "0")))

    def _there(self, path: str) -> Found:
        """Raises Unavailable, Corrupt."""
        found = self._look(path)
        if found is None:
            self._refuse_folder(path)
            raise self._missing(path)
        self._know(path, found)
        return found

    def _refuse_folder(self, path: str) -> None:
        """Asks the bucket itself, too: of one that is gone every object would be missing. Raises
        Corrupt, Unavailable."""
        if self._is_folder(path):
            raise Corrupt(
                f"{self._bucket.place(self._key(path))}: is a folder, and nothing here would make "
                "one of this name; next: see what is in it, and move it away"
            )

    def _is_folder(self, path: str) -> bool:
        """Raises Unavailable."""
        return bool(next(self._pages(f"{self._key(path)}/", limit=1)).sizes_bytes)

    def _know(self, path: str, found: Found) -> None:
        with self._alone:
            if len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[path] = found

    def _forget(self, path: str) -> None:
        with self._alone:
            self._known.pop(path, None)

    def _pages(
        self, prefix: str, *, start: str = "", delimiter: str = "", limit: int = DELETE_MAX
    ) -> Iterator[Keys]:
        """At least one. Raises Unavailable."""
        options = {"list-type": "2", "prefix": prefix, "encoding-type": "url"}
        options["max-keys"] = str(min(limit, DELETE_MAX))
        if start:
            options["start-after"] = start
        if delimiter:
            options["delimiter"] = delimiter
        while True:  # ends: each page is behind the last one
            answer = self._bucket.ask("GET", "", options, is_repeatable=True, about=prefix)
            self._expect(answer, prefix)
            keys = keys_of(answer.body)
            yield keys
            if not keys.next:
                return
            options["continuation-token"] = keys.next

    def _delete(self, keys: Sequence[str]) -> None:
        """Those that are not there are fine. Raises Unavailable: some may be gone."""
        plain = [key for key in keys if can_be_listed(key)]
        batches = [plain[n : n + DELETE_MAX] for n in range(0, len(plain), DELETE_MAX)]
        for batch in batches:
            body = deletion(batch)
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            answer = self._bucket.ask(
                "POST",
                "",
                {"delete": ""},
                {"content-md5": b64encode(digest).decode()},
                body,
                is_repeatable=True,
                about=batch[0],
            )
            if answer.status != 200 or not failures_of(answer.body) <= _GONE:
                raise Unavailable(
                    f"{self._bucket.place(batch[0])}: cannot be deleted, or one of "
                    f"{len(batch) - 1} others ({answer.code}: {answer.message}); next: try again"
                )
        for key in keys:
            if not can_be_listed(key):
                self._expect(self._bucket.ask("DELETE", key, is_repeatable=True), key)

    def _delete_quietly(self, keys: Sequence[str]) -> None:
        with suppress(Unavailable, OutcomeUnknown):
            self._delete(keys)

    def _expect(self, answer: Answer, key: str) -> None:
        """Raises Unavailable."""
        if not answer.is_good:
            raise Unavailable(
                f"{self._bucket.place(key)}: the server refuses it ({answer.status} {answer.code}: "
                f"{answer.message}), and nothing was done; next: headgate doctor lake "
                f"{self._bucket.place(self._above)}"
            )

    def _missing(self, path: str) -> Unavailable:
        return Unavailable(
            f"{self._bucket.place(self._key(path))}: is not there, and nothing was done; next: "
            "stage it again"
        )

    def _another(self, key: str) -> Conflict:
        return Conflict(
            f"{self._bucket.place(key)}: is another file than the one to be removed, and stays; "
            "next: see what it is"
        )
