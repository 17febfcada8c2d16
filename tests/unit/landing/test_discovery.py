"""What landing says of the source partitions it found, so that ready can close an hour."""

from dataclasses import replace

from headgate.ambient import Ambient
from headgate.commits.checkpoint import Checkpoint, checkpoint_key
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.commits.streams import StreamDocument, stream_key, with_closing
from headgate.errors import Unavailable
from headgate.landing.shard import ShardWork
from headgate.landing.stream_document import fix_first_hour, open_stream
from headgate.periods import HOUR_MS, Period, aligned
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.work import RootTools, RootWork
from headgate.store import DocumentStore
from headgate.store.changes import change, create_if_absent, read
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Call, Calm
from headgate.testing.manual import ManualAmbient, manual_store
from tests.crash.landing_world import Held, Process, Watching, World, land, world_of


def close_until(world: World, until_ms: int) -> None:
    """As ready does."""
    key = stream_key(world.settings.name)
    change(world.store, key, StreamDocument, lambda found: with_closing(found, until_ms, None))


def first_hour_of(world: World) -> int | None:
    found = read(world.store, stream_key(world.settings.name), StreamDocument)
    assert found is not None
    return found.value.first_hour_ms


def test_a_commit_says_when_the_source_was_asked_for_its_partitions() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms - 5)
    before_ms = world.now_ms
    land(world)
    checkpoint = world.checkpoint()
    assert before_ms <= checkpoint.discovered_ms <= world.now_ms
    assert checkpoint.reached == {"lane-0": "idle"}


def test_the_time_of_a_discovery_is_taken_before_the_source_is_asked() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms - 5)
    asked_ms: list[int] = []

    def look(call: Call) -> None:
        if call.method == "partitions":
            asked_ms.append(world.now_ms)
            world.ambient.pass_ms(7)

    Process(world, Watching(look)).until(world.is_landed)
    assert world.checkpoint().discovered_ms in asked_ms


def test_a_clock_that_cannot_be_compared_proves_no_discovery() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms - 5)
    process = Process(world, Calm())

    def unknown() -> int:
        raise Unavailable("the store's clock is out of reach")

    tools = replace(process.tools, clock_off_ms=unknown)
    process.works = [ShardWork(process.held, world.settings, 0, tools)]
    process.until(world.is_landed)
    assert world.checkpoint().discovered_ms == 0


def test_a_source_partition_that_joins_is_in_the_checkpoint_before_closing_is_read() -> None:
    world = world_of()
    world.drop("lane-0", world.now_ms - 5)
    land(world)
    hour = Period.hour_of(world.now_ms)
    seen: list[object] = []

    def look(call: Call) -> None:
        is_read = call.method == "get" and call.subject == stream_key(world.settings.name)
        marks = world.checkpoint().watermarks
        if is_read and "lane-7" in marks and not seen:
            seen.append(marks["lane-7"])
            close_until(world, hour.end_ms)  # ready is as fast as it can be

    world.drop("lane-7", world.now_ms - 3)
    Process(world, Watching(look)).until(world.is_landed)

    assert seen == [None]
    assert world.checkpoint().watermarks["lane-7"] == hour.end_ms
    assert world.checkpoint().reached["lane-7"] == "first hour"
    late = [path for path in world.lake.files() if path.startswith("_late/")]
    assert len(late) == 1


def test_a_first_hour_is_never_before_the_roots_frontier() -> None:
    store = manual_store(ManualAmbient())
    settings = settings_of()
    frontier_ms = 9 * HOUR_MS
    root = RootDocument(hours_ms=frontier_ms)
    create_if_absent(store, root_key(root_name(settings.folder)), root)
    assert open_stream(store, settings).floor_ms == frontier_ms
    assert fix_first_hour(store, settings.name, 2 * HOUR_MS) == frontier_ms

    early = replace(settings, name="early", first_hour_ms=2 * HOUR_MS)
    assert open_stream(store, early).first_hour_ms == frontier_ms


def test_hours_that_are_closed_are_forgotten_with_the_next_fact() -> None:
    world = world_of()
    old_ms, new_ms = world.now_ms - 2 * HOUR_MS, world.now_ms - 5
    world.drop("lane-0", old_ms, new_ms)
    land(world)
    old, new = str(Period.hour_of(old_ms)), Period.hour_of(new_ms)
    assert set(world.checkpoint().periods) == {old, str(new)}

    key = stream_key(world.settings.name)
    closed_ms = new.start_ms
    change(world.store, key, StreamDocument, lambda found: with_closing(found, None, closed_ms))
    world.drop("lane-0", world.now_ms - 1)
    land(world)
    assert old not in world.checkpoint().periods
    assert str(new) in world.checkpoint().periods


def root_work(world: World, store: DocumentStore, ambient: Ambient) -> RootWork:
    settings = world.settings
    stream = ReadyStream(settings.name, settings.folder, settings.allowed_lateness_ms)
    process = Process(world, Calm())
    tools = RootTools(store, world.lake, process.tools.ledger, ambient, lambda: world.now_ms)
    return RootWork(Held(1), RootSettings(root_name(settings.folder), (stream,)), tools)


def test_inv6_what_was_landed_in_an_hour_is_in_its_certificate_and_nothing_comes_later() -> None:
    world = world_of()
    hour = Period.hour_of(world.now_ms)
    world.drop("lane-0", world.now_ms - 5, world.now_ms - 4)
    land(world)
    ready = root_work(world, world.store, world.ambient)
    ready.tick()
    assert not [path for path in world.lake.files() if path.endswith("_READY")]

    world.ambient.pass_ms(2 * HOUR_MS)
    shards = Process(world, Calm())
    key = checkpoint_key(world.settings.name, 0)

    def is_past() -> bool:
        marks = world.checkpoint().watermarks.values()
        return all(mark_ms is not None and mark_ms >= hour.end_ms for mark_ms in marks)

    shards.until(is_past)
    ready.tick()
    folder = world.settings.folder.folder(hour, stream=world.settings.name)
    landed = {path for path in world.lake.files() if path.startswith(f"{folder}/shard")}
    assert f"{folder}/_READY" in world.lake.files()

    world.drop("lane-9", hour.start_ms + 1)
    Process(world, Calm()).until(world.is_landed)
    after = {path for path in world.lake.files() if path.startswith(f"{folder}/shard")}
    assert after == landed
    assert world.audit() == ()
    assert change(world.store, key, Checkpoint, lambda found: found).value.counts["late"] == 1


def test_a_first_record_ahead_of_its_arrival_is_in_an_hour_that_is_expected() -> None:
    world = world_of()
    world.ambient.pass_ms(HOUR_MS - world.now_ms % HOUR_MS - 120_000)
    ahead_ms = world.now_ms + 180_000  # of the next hour, by a clock that is a little ahead
    world.drop("lane-0", ahead_ms)
    land(world)
    assert first_hour_of(world) is None

    world.ambient.pass_ms(90 * 60_000)
    world.drop("lane-0", world.now_ms - 5)
    land(world)
    assert first_hour_of(world) == aligned(ahead_ms, HOUR_MS)
