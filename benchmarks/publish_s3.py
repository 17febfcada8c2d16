"""What publishing in a bucket costs against bare copies and deletes with the same parallelism.

    python -m benchmarks.publish_s3 [--objects 2000] [--rounds 5]

Ours is `publish_all` of a commit's sealed files, as a replay calls it: each looked at, copied by
the server only if it is what was sealed and nothing has its name, the staged ones deleted, and seen
to be gone. The peer copies and deletes each object and looks at nothing (obstore, as many requests
in flight). Both on the same real server, by turns, each with objects of its own. Requests are
counted by the server: those of the publishing, and those of the sealing before it.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from obstore.store import S3Store

from benchmarks.report import Number, publish
from headgate.ambient import SystemAmbient
from headgate.lake import REQUESTS_MAX
from headgate.lake.paths import STAGING
from headgate.lake.s3 import S3Lake
from headgate.node import Hands
from tests.servers.s3 import ACCESS_KEY, SECRET_KEY, S3Server

CONTENT = b"x" * 4_000


@dataclass(frozen=True)
class Wanted:
    """`headgate.lake.Move`."""

    staged: str
    published: str
    size_bytes: int
    checksum: str


def staged(store: S3Store, folder: str, count: int) -> list[str]:
    async def put() -> None:
        gate = asyncio.Semaphore(REQUESTS_MAX)

        async def one(number: int) -> None:
            async with gate:
                await store.put_async(f"the-lake/{folder}/{number}", CONTENT)

        await asyncio.gather(*map(one, range(count)))

    asyncio.run(put())
    return [f"{folder}/{number}" for number in range(count)]


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def bare(store: S3Store, paths: list[str], to: str) -> float:
    async def act() -> None:
        gate = asyncio.Semaphore(REQUESTS_MAX)

        async def one(number: int, path: str) -> None:
            async with gate:
                await store.copy_async(f"the-lake/{path}", f"the-lake/{to}/{number}")
                await store.delete_async(f"the-lake/{path}")

        await asyncio.gather(*(one(number, path) for number, path in enumerate(paths)))

    return timed(lambda: asyncio.run(act()))


def measure(count: int, rounds: int) -> list[Number]:
    ours_s, bare_s, seal_s = list[float](), list[float](), list[float]()
    asked, sealing = 0, 0
    with S3Server() as server, closing(Hands(REQUESTS_MAX)) as hands:
        bucket = server.new_bucket()
        store = S3Store(
            bucket,
            endpoint=f"http://{server.address}",
            region="us-east-1",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            client_options={"allow_http": True},
        )
        lake = S3Lake(server.lake(bucket), SystemAmbient(), hands.each)
        lake.publish_all([Wanted(f"{STAGING}/s/none", "none", 1, "crc64nvme:00")])  # asks once

        def requests() -> int:
            return len(server.access_log.read_bytes().splitlines())

        for number in range(rounds):
            paths = staged(store, f"{STAGING}/orders/{number}", count)
            before = requests()
            facts = lake.seal(paths[:1])
            seal_s.append(timed(lambda paths=paths: lake.seal(paths)))  # type: ignore[misc] # mypy cannot tell the type of a lambda with a default
            sealing += requests() - before - len(facts)
            moves = [
                Wanted(path, f"day/{number}/{n}", facts[0].size_bytes, facts[0].checksum)
                for n, path in enumerate(paths)
            ]
            before = requests()
            ours_s.append(timed(lambda moves=moves: check(lake.publish_all(moves))))  # type: ignore[misc] # the same
            asked += requests() - before
            paths = staged(store, f"{STAGING}/bare/{number}", count)
            bare_s.append(bare(store, paths, f"bare/{number}"))
    ours, peer = statistics.median(ours_s), statistics.median(bare_s)
    per_file = asked / (count * rounds)
    return [
        Number(
            "publish_s3",
            count / ours,
            "files/s",
            ours / peer,
            "a copy and a delete for each object, as many at once (obstore)",
            {
                "objects": count,
                "ours_s": ours,
                "bare_s": peer,
                "seal_s": statistics.median(seal_s),
                "requests_per_file": per_file,
                "requests_per_file_sealed": per_file + sealing / (count * rounds),
            },
        )
    ]


def check(done: tuple[bool, ...]) -> None:
    assert all(done), f"{done.count(False)} were not published"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    numbers = measure(given.objects, given.rounds)
    for name in ("requests_per_file", "requests_per_file_sealed"):
        print(f"publish_s3.{name} {numbers[0].detail[name]:.3f}")
    publish("publish_s3", numbers)


if __name__ == "__main__":
    main()
