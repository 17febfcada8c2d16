"""Landing and ready on one store and one lake, in memory: what the one says, the other rests on."""

from dataclasses import replace

from headgate.audit.verifying import Verified, verify
from headgate.commits.certificate import (
    FLAG,
    from_bytes,
    parent_flag_path,
    parent_from_bytes,
)
from headgate.commits.roots import RootDocument, root_key, root_name
from headgate.lake import Lake
from headgate.lake.ledger import Ledger
from headgate.landing import Output, StreamSettings
from headgate.periods import HOUR_MS, Period, aligned
from headgate.ready import ReadyStream, RootSettings
from headgate.ready.work import RootTools, RootWork
from headgate.store import DocumentStore
from headgate.store.changes import read
from headgate.testing.estuary import settings_of
from headgate.testing.faults import Calm, Stage, wrap
from tests.crash.landing_world import Held, Process, World

MINUTE_MS = 60_000


class Shore:
    """Streams of one root, each with a brook of its own. It begins at the start of an hour."""

    def __init__(
        self, *names: str, first: int | None = None, outputs: tuple[Output, ...] = ()
    ) -> None:
        """`first`: the settings' first hour, so many hours from now; `outputs`: of the first."""
        self.worlds: dict[str, World] = {}
        for name in names or ("orders",):
            self.add(name, first, () if self.worlds else outputs)
        self.epoch = 0

    def add(self, name: str, first: int | None = None, outputs: tuple[Output, ...] = ()) -> World:
        world = World(replace(settings_of(), name=name, outputs=outputs))
        if not self.worlds:
            world.ambient.pass_ms(11 * HOUR_MS - world.now_ms % HOUR_MS)
        else:
            old = self.base
            world.store, world.ambient = old.store, old.ambient
            world.estuary.lake = old.lake
        self.worlds[name] = world
        if first is not None:
            first_ms = self.hour(first).start_ms
            world.settings = replace(world.settings, first_hour_ms=first_ms)
        world.estuary.brook.add(f"{name}-0")
        return world

    @property
    def base(self) -> World:
        return next(iter(self.worlds.values()))

    @property
    def now_ms(self) -> int:
        return self.base.now_ms

    def hour(self, number: int) -> Period:
        """From the current one."""
        return Period(aligned(self.now_ms, HOUR_MS) + number * HOUR_MS, "hour")

    def pass_ms(self, duration_ms: int) -> None:
        self.base.ambient.pass_ms(duration_ms)

    def drop(self, *events_ms: int | None, stream: str = "orders", lane: int = 0) -> None:
        self.worlds[stream].drop(f"{stream}-{lane}", *events_ms)

    def land(self, *streams: str) -> None:
        """Until all that is there has landed, with a proof of it."""
        for name in streams or tuple(self.worlds):
            process = Process(self.worlds[name], Calm())
            process.until(self.worlds[name].is_landed)
            for _ in range(6):
                process.turn()

    def settings(self) -> RootSettings:
        faces = [face for world in self.worlds.values() for face in world.settings.flagged]
        return RootSettings(root_name(faces[0].folder), tuple(map(ready_of, faces)))

    def holder(self, stage: Stage | None = None) -> RootWork:
        self.epoch += 1
        base, own = self.base, stage or Calm()
        lake, store = wrap(Lake, base.lake, own), wrap(DocumentStore, base.store, own)
        ledger = Ledger(lake, "node", base.ambient)
        tools = RootTools(store, lake, ledger, base.ambient, lambda: self.now_ms)
        return RootWork(Held(self.epoch), self.settings(), tools)

    def flag(self, work: RootWork | None = None) -> None:
        """Whoever holds the root looks, until nothing more is due."""
        holder = work or self.holder()
        for _ in range(60):
            due_ms = holder.tick()
            if due_ms is None or due_ms > self.base.ambient.monotonic_ms():
                return
        raise AssertionError("it does not come to an end")

    def flagged(self, stream: str = "orders") -> list[Period]:
        end = f"/{stream}/{FLAG}"
        found = [path for path in self.base.lake.files() if path.endswith(end)]
        return [Period.parse(path.removesuffix(end).replace("/", "T")) for path in sorted(found)]

    def over_all(self) -> list[str]:
        return [
            path.removesuffix(f"/{FLAG}")
            for path in sorted(self.base.lake.files())
            if path.endswith(FLAG) and path.count("/") == 2
        ]

    def children(self, hour: Period) -> set[str]:
        """The streams that the flag over all of them vouches for."""
        flag = parent_flag_path(self.base.settings.folder, hour)
        assert flag is not None
        return set(parent_from_bytes(self.base.lake.files()[flag], flag).children)

    def root(self) -> RootDocument:
        found = read(self.base.store, root_key(self.settings().name), RootDocument)
        return RootDocument() if found is None else found.value

    def verified(self) -> Verified:
        every = [face for world in self.worlds.values() for face in world.settings.flagged]
        return verify(self.base.lake, {face.name: face.folder for face in every}, None)

    def faults(self) -> list[str]:
        """What breaks invariant 6 or 7: flagged hours hold exactly what they certify, a record is
        in the lake once, and a parent has every expected child."""
        files = self.base.lake.files()
        found = [f"{one.subject}: {one.words}" for one in self.verified().findings]
        for name, world in self.worlds.items():
            faces = [one.name for one in world.settings.flagged]
            for face, hour in [(one, hour) for one in faces for hour in self.flagged(one)]:
                folder = world.settings.folder.folder(hour, stream=face)
                raw = files[f"{folder}/{FLAG}"]
                certified = {one.path for one in from_bytes(raw, folder).files}
                there = {p for p in files if p.startswith(f"{folder}/") and FLAG not in p}
                if certified != there:
                    found.append(f"{face} {hour}: {sorted(certified ^ there)}")
            if world.is_landed():
                landed = [one for one in world.estuary.brook.ids()]
                counts = self.counts(name)
                found += [
                    f"{name} record {n}: {counts.get(n, 0)}" for n in landed if counts.get(n) != 1
                ]
        return found

    def counts(self, stream: str) -> dict[int, int]:
        """How often each record of a stream is in the lake."""
        world = self.worlds[stream]
        found: dict[int, int] = {}
        names = {stream, *(face.name for face in world.settings.flagged)}
        for path, content in world.estuary.published().items():
            if names.intersection(path.split("/")) and FLAG not in path:
                for line in content.decode().splitlines():
                    number = int(line.split('"id": ')[1].split(",")[0])
                    found[number] = found.get(number, 0) + 1
        return found


def ready_of(stream: StreamSettings) -> ReadyStream:
    return ReadyStream(
        stream.name, stream.folder, stream.allowed_lateness_ms, stream.last_hour_ms, of=stream.of
    )
