"""How a table looks to the cluster."""

from collections.abc import Callable
from dataclasses import replace

from headgate.apply import TableSettings
from headgate.apply.kind import TableFeed, TableKind, kind_name
from headgate.apply.table_document import TableDocument, table_key
from headgate.cluster.feeds import feed_key
from headgate.store.changes import read
from headgate.tables import Table
from headgate.tables.parquet import ParquetTable
from headgate.testing.basin import Basin, Ladle
from headgate.testing.manual import ManualNode, run_until
from tests.crash.apply_world import SETTINGS, Process, World, name_of


def test_a_table_is_one_task() -> None:
    feed = TableFeed(SETTINGS)
    (order,) = feed.wanted(0, 10)
    assert (order.kind, order.labels) == ("apply:orders_daily", ())
    assert feed.name == kind_name("orders_daily")
    assert feed.wanted(1, 10) == ()


def test_b24_a_node_that_claims_the_task_applies_what_is_ready() -> None:
    world = World()
    world.flag(0, "a")
    kind = TableKind(SETTINGS, Process(world).tools)
    node = ManualNode("n", world.store, world.ambient, [kind], [TableFeed(SETTINGS)])
    run_until(lambda: world.is_over(0), [node], world.ambient)
    assert len(world.rows()) == 1
    assert world.store.get(feed_key(kind.name)) is not None
    assert kind.release_command("apply:orders_daily/0") == (
        'headgate task release apply:orders_daily/0 --reason "…"'
    )


def test_bf8_a_halted_table_stops_nothing_else() -> None:
    world, basin = World(), Basin()
    world.flag(0, "a")
    world.ladle.poison = {name_of(0)}
    sales, tools = replace(SETTINGS, name="sales"), Process(world).tools

    def open_sales(settings: TableSettings, epoch: int, check: Callable[[], None]) -> Table:
        ladle = Ladle(world.lake.read, basin.put_at)
        return ParquetTable(settings.name, basin, ladle, world.ambient, epoch, check)

    kinds = [TableKind(SETTINGS, tools), TableKind(sales, replace(tools, open_table=open_sales))]
    feeds = [TableFeed(SETTINGS), TableFeed(sales)]
    node = ManualNode("n", world.store, world.ambient, kinds, feeds, workers=2)
    run_until(lambda: world.document().state == "halted", [node], world.ambient)
    world.flag(1, "b")

    def is_applied() -> bool:
        found = read(world.store, table_key("sales"), TableDocument)
        return found is not None and found.value.applied_up_to == name_of(1)

    run_until(is_applied, [node], world.ambient)
    assert world.document().state == "halted"
    assert world.rows() == []
