"""Outputs of a stream, by real Spark: each record lands under the name whose filter takes it first,
once, and what no filter takes is a dead letter. Flags, certificates and tables are the outputs'."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Invalid, RunResult, Table
from headgate.app.acts import Person
from headgate.app.nodes import Joined
from headgate.commits.record import Record
from headgate.periods import HOUR_MS, Period
from tests.integration.landings import Yard, now_ms, sockets_to_java, whole_hour
from tests.spark import USES_SPARK

__all__ = ["sockets_to_java"]

pytestmark = USES_SPARK

HEADGATE = str(Path(sys.executable).with_name("headgate"))
QUICK: dict[str, Any] = {"shift": "1s", "grace": "0s", "allowed_lateness": "0s"}
OUTPUTS = {
    "orders": {"filter": "get_json_object(value, '$.type') = 'order'"},
    "clicks": {"json": "$.type", "equals": "click"},
    "all_orders": {"filter": "value LIKE '%order%'"},  # the first one that holds takes it
}


def event(number: int, type_: str | None, at_ms: int) -> dict[str, Any]:
    return {"id": number, "at": at_ms, **({} if type_ is None else {"type": type_})}


def seen(yard: Yard, stream: str, *outputs: str) -> Counter[tuple[str, int, int]]:
    """How often each record is there, over outputs, late ones and dead letters."""
    rows = [row for output in outputs for kind in ("data", "late") for row in getattr(
        yard.rows(output), kind)] + yard.rows(stream).dead  # fmt: skip
    return Counter(row.position for row in rows)


def counted(record: Record) -> Counter[str]:
    found: Counter[str] = Counter()
    for file in record.files:
        found[file.kind] += file.rows
    return found


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Yard, Any, RunResult]:
    yard = Yard(tmp_path_factory.mktemp("outputs"))
    types = ["order", "click", "reorder", None, "sneeze"]
    at_ms = whole_hour(4)
    events = [event(n, types[n % 5], at_ms + n % 2 * HOUR_MS) for n in range(100)]
    only_orders = [event(n, "order", at_ms + 2 * HOUR_MS) for n in range(100, 110)]
    yard.drop("events", "a.json", events)
    yard.drop("events", "b.json", [*only_orders, {"id": 110, "type": "order"}])
    app = yard.app(yard.stream("events", outputs=OUTPUTS, merge=True, **QUICK))
    app.add(Table("daily", stream="clicks", path=yard.root / "tables/daily"))
    return yard, app, app.run(until="idle")


def test_each_record_lands_once_under_the_name_that_takes_it_first(
    landed: tuple[Yard, Any, RunResult],
) -> None:
    yard, _, result = landed
    assert yard.rows("orders").counts == (30, 0, 0)
    assert yard.rows("clicks").counts == (20, 0, 0)
    assert yard.rows("all_orders").counts == (20, 0, 0)  # reorder: of order the first one took all
    assert {row.value["type"] for row in yard.rows("all_orders").data} == {"reorder"}
    dead = yard.rows("events").dead
    assert Counter(row.reason for row in dead) == {"no output": 40, "no event time": 1}
    assert yard.rows("events").data == []
    assert set(seen(yard, "events", *OUTPUTS).values()) == {1}
    assert len(seen(yard, "events", *OUTPUTS)) == 111
    one = result.streams["events"]
    assert (one.landed, one.late, one.dead) == (70, 0, 41)
    for record in yard.records("events"):
        assert counted(record) == Counter(
            {kind: count for kind, count in record.counts.items() if count}
        )


def test_every_output_has_its_flags_and_an_empty_hour_is_one(
    landed: tuple[Yard, Any, RunResult],
) -> None:
    yard, app, result = landed
    hours = [str(Period(whole_hour(4 - n), "hour")) for n in range(3)]
    rows = {
        name: [app.certificate(name, hour).counts["landed"] for hour in hours] for name in OUTPUTS
    }
    assert rows == {"orders": [10, 10, 10], "clicks": [10, 10, 0], "all_orders": [10, 10, 0]}
    empty = app.certificate("clicks", hours[2])
    assert (empty.files, empty.stream) == ((), "clicks")
    assert empty.commits == app.certificate("orders", hours[2]).commits
    for hour in hours:
        folder = yard.lake / hour.replace("T", "/")
        assert sorted(path.parent.name for path in folder.glob("*/_READY")) == sorted(OUTPUTS)
        assert set(json.loads((folder / "_READY").read_bytes())["children"]) == set(OUTPUTS)
        assert all(app.wait(name, hour, timeout="1s") for name in OUTPUTS)
    assert app.why("clicks").stream == "clicks"
    with pytest.raises(Invalid, match="has outputs; next: name one of them: orders, clicks"):
        app.why("events")
    assert result.ready_until("events") is not None
    taken = result.tables["daily"]
    assert (taken.state, taken.rows) == ("running", 20)


def test_the_audit_holds_for_outputs_and_notices_what_somebody_did(
    landed: tuple[Yard, Any, RunResult], tmp_path: Path
) -> None:
    yard, app, _ = landed
    found = app.audit(is_deep=True)
    assert (found.findings, found.remarks, yard.staging()) == ((), (), [])
    assert found.checked.rows == {"data": 70, "dead": 41}
    assert app.verify().is_clean

    path = min(yard.lake.glob("*/*/clicks/data/*.parquet"))
    away = path.rename(tmp_path / path.name)
    gone = app.audit().findings
    name = path.name.replace("-0.parquet", "-9.parquet")  # of the same commit, as if it were so
    wrong = away.rename(path.parent.parent.parent / "orders/data" / name)
    elsewhere = app.audit().findings
    wrong.rename(path)

    assert [one.invariant for one in gone] == [2]
    assert sorted(one.invariant or 0 for one in elsewhere) == [2, 6]
    assert app.audit().findings == ()


def test_a_letter_that_a_corrected_filter_takes_lands_there(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    at_ms = now_ms() - 1000
    yard.drop("events", "a.json", [event(1, "order", at_ms), event(2, "click", at_ms)])
    only = {"orders": {"json": "$.type", "equals": "order"}}
    app = yard.app(yard.stream("events", outputs=only))
    app.run(until="idle")
    assert yard.rows("events").reasons == {"no output": 1}
    with app.acts() as acts:
        (letter,) = acts.dead_letters("events")
        acts.redrive("events", letter.path, Person("ada", "clicks are wanted"))

    more = {**only, "clicks": {"filter": "value LIKE '%click%'"}}
    app = yard.app(yard.stream("events", outputs=more))
    app.run(until="idle")

    assert yard.rows("clicks").ids() == {2: 1}
    assert yard.rows("events").dead == []
    assert app.audit(is_deep=True).findings == ()


@pytest.mark.parametrize("land_as", ["parquet", "json", "text"])
def test_csv_is_sorted_by_its_columns_however_it_lands(tmp_path: Path, land_as: str) -> None:
    yard = Yard(tmp_path)
    at_ms = whole_hour(2)
    rows = b"id,at,kind\n" + "".join(f"{n},{at_ms},{'ab'[n % 2]}\n" for n in range(9)).encode()
    yard.drop("mixed", "a.csv", rows + f"9,{at_ms},\n".encode())
    outputs = {"as": {"filter": "kind = 'a'"}, "bs": {"filter": "kind = 'b'"}}
    app = yard.app(
        yard.stream("mixed", {"column": "at"}, "csv", outputs=outputs, land_as=land_as, **QUICK)
    )
    app.run(until="idle")
    counts = [len(yard.rows(name).data) for name in outputs]
    assert counts == [5, 4]
    assert yard.rows("mixed").reasons == {"no output": 1}  # null is not taken
    assert app.audit(is_deep=True).findings == ()


def test_parquet_is_sorted_by_its_columns_and_late_ones_have_their_output(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    outputs = {"small": {"filter": "size < 10"}, "large": {"filter": "size >= 10"}}
    app = yard.app(yard.stream("all", {"column": "at"}, "parquet", outputs=outputs, **QUICK))

    def drop(name: str, sizes: list[int | None], at_ms: int) -> None:
        table = pa.table({"size": pa.array(sizes, pa.int32()), "at": [at_ms] * len(sizes)})
        pq.write_table(table, yard.folder("all") / name)

    drop("a.parquet", [1, 20, None], whole_hour(3))
    app.run(until="idle")
    drop("b.parquet", [2, 3, 30], whole_hour(3))
    app.run(until="idle")

    assert yard.rows("small").counts == (1, 2, 0)
    assert yard.rows("large").counts == (1, 1, 0)
    assert yard.rows("all").reasons == {"no output": 1}
    assert app.audit(is_deep=True).findings == ()


def test_a_store_that_is_lost_is_made_anew_and_the_outputs_go_on(tmp_path: Path) -> None:
    yard, at_ms = Yard(tmp_path), whole_hour(3)
    first = [event(n, ("order", "click")[n % 2], at_ms) for n in range(20)]
    yard.drop("events", "a.json", [*first, event(20, None, at_ms)])
    streams = yard.stream("events", outputs=OUTPUTS, merge=True, **QUICK)
    yard.app(streams).run(until="idle")
    flags = {
        name: yard.app(streams).certificate(name, str(Period(at_ms, "hour"))) for name in OUTPUTS
    }
    assert all(flags.values())
    shutil.rmtree(tmp_path / "state")
    source = {"kind": "files", "path": str(yard.folder("events"))}
    told = {"source": source, "event_time": {"json": "$.at"}, "outputs": OUTPUTS, **QUICK}
    tree = {"store": "file:./state", "lake": "./lake", "streams": {"events": told}}
    (tmp_path / "headgate.yaml").write_text(json.dumps(tree))

    done = subprocess.run(
        [HEADGATE, "store", "rebuild", "--reason", "its disk is gone"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    yard.drop(
        "events", "b.json", [event(n, ("order", "click")[n % 2], now_ms()) for n in range(30, 40)]
    )
    app = yard.app(streams)
    app.run(until="idle")

    assert yard.rows("orders").ids() == Counter([*range(0, 20, 2), *range(30, 40, 2)])
    assert yard.rows("clicks").ids() == Counter([*range(1, 20, 2), *range(31, 40, 2)])
    assert yard.rows("events").reasons == {"no output": 1}
    assert {name: app.certificate(name, str(Period(at_ms, "hour"))) for name in OUTPUTS} == flags
    assert app.audit(is_deep=True).findings == ()
    assert app.verify().is_clean


def test_expressions_are_judged_at_the_start_and_the_other_streams_go_on(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    yard.drop("right", "a.json", [event(1, "order", now_ms() - 1000)])
    wrong = {"orders": {"filter": "kind = 'order'"}}  # and no record is there
    app = yard.app(
        yard.stream("split", outputs=wrong, shards=2, **QUICK),
        yard.stream("timed", {"sql": "no_such_column + 1"}, **QUICK),
        yard.stream("right", outputs={"all": {"filter": "true"}}, **QUICK),
    )

    def is_over() -> bool:
        aside = [one.name for one in app.progress() if one.set_aside]
        return sorted(aside) == ["split/0", "split/1", "timed/0"] and bool(yard.rows("all").data)

    def end_if_over(joined: Joined) -> None:
        if is_over():
            joined.node.drain()

    result = app.run(max_seconds=300, on_poll=end_if_over)

    assert is_over()
    still = {name: one.stands_still for name, one in result.streams.items() if one.stands_still}
    assert "the filter of output orders, \"kind = 'order'\", is refused" in still["split"][0]
    assert "Spark refuses event_time sql 'no_such_column + 1'" in still["timed"][0]
    assert "headgate shard release timed/0" in still["timed"][0]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("no_such_column = 1", "is refused by Spark"),
        ("length(value)", "gives a int, and must be true or false"),
        ("value LIKE", "is refused by Spark"),
    ],
)
def test_a_filter_that_spark_refuses_sets_the_shard_aside_at_once(
    tmp_path: Path, condition: str, said: str
) -> None:
    yard = Yard(tmp_path)
    yard.drop("events", "a.json", [event(1, "order", now_ms())])
    app = yard.app(yard.stream("events", outputs={"orders": {"filter": condition}}, **QUICK))
    (words,) = app.run(until="idle").streams["events"].stands_still
    assert said in words
    assert "the filter of output orders" in words
    assert "headgate shard release events/0" in words
