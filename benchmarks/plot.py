"""The picture of docs/why/performance.md, from what was measured: records in a second.

python -m benchmarks.plot      after land_files and land_kafka; a test compares it with them
"""

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

from benchmarks.report import RESULTS

IMAGE = Path(__file__).parents[1] / "docs/images/performance.svg"
RECORDS = 5_000_000
WAYS = {  # by number: its title, and its bars by what they took
    "land_kafka": (
        "from a Kafka topic of 4 partitions",
        {
            "streaming_s": "Structured Streaming, get_json_object",
            "ours_s": "Headgate, first read to fact",
            "same_s": "bare batch job, our function, rows as ours",
            "quick_s": "bare batch job, our event-time function",
        },
    ),
    "land_files": (
        "from 40 files of JSON lines",
        {
            "plain_s": "bare batch job, get_json_object",
            "ours_s": "Headgate, first look to fact",
            "quick_s": "bare batch job, our event-time function",
        },
    ),
}
WIDTH, LABELS, BAR, GAP = 760, 290, 22, 8
OURS, OTHERS = "#1f6feb", "#9aa4b2"
LARGEST = 1_250_000  # records in a second at the right edge


def picture() -> str:
    """Of all that is in the results."""
    parts, y = list[str](), 34
    for name, (title, bars) in WAYS.items():
        path = RESULTS / f"{name}.json"
        found = json.loads(path.read_text("utf-8"))[name]
        on, spark = found["on"], found["versions"]["pyspark"]
        parts.append(_text(0, y, f"5 M JSON records {title}, to hourly zstd Parquet", "bold"))
        y += 14
        for key, label in bars.items():
            parts += _bar(y, label, RECORDS / found["detail"][key], is_ours=key == "ours_s")
            y += BAR + GAP
        told = f"{on['cores']} cores, {on['memory_gb']} GB, {on['system']}, Spark {spark}"
        parts.append(_text(LABELS, y + 10, f"{told}, {on['measured_at'][:10]}", "normal", "#667"))
        y += 52
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y - 20}" width="{WIDTH}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" '
        'aria-label="Records landed in a second">'
    )
    ground = f'<rect width="{WIDTH}" height="{y - 20}" fill="#fff"/>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def _bar(y: int, label: str, rate: float, *, is_ours: bool) -> Iterator[str]:
    length = (WIDTH - LABELS - 90) * min(1.0, rate / LARGEST)
    yield _text(8, y + BAR - 6, label, "bold" if is_ours else "normal")
    colour = OURS if is_ours else OTHERS
    yield f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}" rx="2"/>'
    yield _text(LABELS + length + 8, y + BAR - 6, f"{rate / 1e6:.2f} M/s", "bold")


def _text(x: float, y: int, words: str, weight: str, colour: str = "#222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" fill="{colour}">{escape(words)}</text>'
    )


if __name__ == "__main__":
    IMAGE.write_text(picture(), "utf-8")
