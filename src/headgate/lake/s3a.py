"""S3a: how Spark reaches the bucket of a lake: by itself, with the keys that the node has. Pure but
for looking those up.

Spark writes what it stages straight into the bucket; no record passes through the driver.
"""

from collections.abc import Mapping
from typing import Final

from headgate.ambient import Ambient
from headgate.lake import LakeSettings
from headgate.lake.bucket import region_of
from headgate.lake.credentials import Keyring
from headgate.lake.opening import scheme_of

_S3A: Final = "spark.hadoop.fs.s3a"
_PROVIDERS: Final = "org.apache.hadoop.fs.s3a"


def conf_of(settings: LakeSettings, ambient: Ambient) -> dict[str, str]:
    """For a session of Spark; nothing where the lake is no bucket. Raises Invalid, Unavailable."""
    if scheme_of(settings.root) != "s3":
        return {}
    bucket = settings.bucket
    found = {
        f"{_S3A}.endpoint.region": region_of(bucket),
        f"{_S3A}.path.style.access": str(bucket.is_path_style).lower(),
        # What waits to be sent is kept in memory: on disk it would need the local file system that
        # keeps checksums, and that one cannot read every name of a source.
        f"{_S3A}.fast.upload.buffer": "array",
        f"{_S3A}.fast.upload.active.blocks": "2",
        # Each file that is being written takes a whole part at once, and a task writes several.
        f"{_S3A}.multipart.size": "8M",
        # There is no rename: by the other way each file would be copied twice. What a task left
        # that died half way is found when the rows are counted, and the job is repeated elsewhere.
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    }
    if bucket.endpoint:
        found[f"{_S3A}.endpoint"] = bucket.endpoint
        is_plain = bucket.endpoint.startswith("http://")
        found[f"{_S3A}.connection.ssl.enabled"] = str(not is_plain).lower()
    return {**found, **_keys(settings, ambient)}


def _keys(settings: LakeSettings, ambient: Ambient) -> Mapping[str, str]:
    """Those of the settings; else Spark looks them up itself, and again before they end."""
    if not settings.bucket.access_key:
        return {}
    who = Keyring(settings.bucket, ambient).current()
    kind = (
        "TemporaryAWSCredentialsProvider" if who.session_token else "SimpleAWSCredentialsProvider"
    )
    keys = {
        f"{_S3A}.aws.credentials.provider": f"{_PROVIDERS}.{kind}",
        f"{_S3A}.access.key": who.access_key,
        f"{_S3A}.secret.key": who.secret_key,
    }
    if who.session_token:
        keys[f"{_S3A}.session.token"] = who.session_token
    return keys
