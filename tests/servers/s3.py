"""S3: versitygw on a folder of this machine, and a client of its own to look with.

Measured on two cores: 0.1 s to start, 72 MB. It honours If-None-Match and If-Match on PUT, DELETE
and the end of a multipart upload, and ignores If-None-Match on a copy. `kill -9` and a start keep
every acknowledged object.
"""

import http.client
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.ambient import SystemAmbient
from headgate.lake import BucketSettings, LakeSettings
from headgate.lake.bucket import Bucket
from headgate.lake.objects import keys_of
from tests.servers.fetch import fetched
from tests.servers.process import ChildProcess, free_ports, stop_all, wait_until, working_folder

READY_WITHIN_S = 20
ACCESS_KEY, SECRET_KEY = "headgate", "not-a-secret"


class S3Server:
    """Buckets are folders; each test has its own. `copy_bytes_max`: no larger one is copied at
    once, as with Amazon's 5 GB."""

    def __init__(self, *, copy_bytes_max: int = 5 << 30, folder: Path | None = None) -> None:
        self.port = free_ports(1)[0]
        self.address = f"127.0.0.1:{self.port}"
        self._copy_bytes_max = copy_bytes_max
        self._given_folder = folder
        self._folder = Path()
        self._exits = ExitStack()
        self._numbers = count()
        self._child: ChildProcess | None = None

    def __enter__(self) -> Self:
        with ExitStack() as exits:
            self._folder = exits.enter_context(working_folder("s3", self._given_folder))
            for name in ("data", "versions"):
                (self._folder / name).mkdir()
            self._child = ChildProcess("s3", self._command(), self._folder / "server.log")
            exits.callback(stop_all, [self._child])
            self.start()
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, traceback)

    @property
    def child(self) -> ChildProcess:
        assert self._child is not None
        return self._child

    @property
    def access_log(self) -> Path:
        """A line for each request that was answered."""
        return self._folder / "access.log"

    def start(self) -> None:
        self.child.start()
        wait_until(self._answers, "S3", READY_WITHIN_S, [self.child])

    def new_bucket(self, *, is_versioned: bool = False) -> str:
        name = f"bucket-{next(self._numbers)}"
        bucket = self.client(name)
        assert bucket.ask("PUT", "", is_repeatable=True).is_good
        if is_versioned:
            body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
            answer = bucket.ask("PUT", "", {"versioning": ""}, body=body, is_repeatable=True)
            assert answer.is_good, answer
        return name

    def place(self, bucket: str) -> Path:
        """Where the server keeps it."""
        return self._folder / "data" / bucket

    def settings(self, address: str = "") -> BucketSettings:
        return BucketSettings(f"http://{address or self.address}", "", True, ACCESS_KEY, SECRET_KEY)

    def lake(self, bucket: str, folder: str = "the-lake", address: str = "") -> LakeSettings:
        return LakeSettings(f"s3://{bucket}/{folder}", bucket=self.settings(address))

    def client(self, bucket: str, address: str = "") -> Bucket:
        return Bucket(bucket, self.settings(address), "us-east-1", SystemAmbient())

    def contents(self, bucket: str, folder: str = "the-lake") -> Mapping[str, bytes]:
        """Every object below the folder, by its path there, as somebody else sees it."""
        client, found = self.client(bucket), dict[str, bytes]()
        options = {"list-type": "2", "prefix": f"{folder}/"}
        while True:
            keys = keys_of(client.ask("GET", "", options, is_repeatable=True).body)
            for key in keys.sizes_bytes:
                if not key.endswith("/"):  # of a folder that s3a made
                    body = client.ask("GET", key, is_repeatable=True).body
                    found[key.removeprefix(f"{folder}/")] = body
            if not keys.next:
                return found
            options["continuation-token"] = keys.next

    def uploads(self, bucket: str) -> bytes:
        """What the server says of uploads that nobody completed."""
        return self.client(bucket).ask("GET", "", {"uploads": ""}, is_repeatable=True).body

    def _command(self) -> list[str]:
        return [
            *(str(fetched("versitygw") / "versitygw"), "--quiet", "--keep-alive"),
            *("--access", ACCESS_KEY, "--secret", SECRET_KEY, "--port", self.address),
            *("--access-log", str(self._folder / "access.log")),
            *("--copy-object-threshold", str(self._copy_bytes_max)),
            *("posix", "--versioning-dir", str(self._folder / "versions")),
            str(self._folder / "data"),
        ]

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(self.address, timeout=1)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status in (200, 403)
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
