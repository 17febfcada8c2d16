"""Quick: a function in Java that takes the event time out of a JSON record, three times as fast as
patterns do (`jsonpath`), and proves that the record is well formed.

It is an offer: where Spark does not take it, patterns do the same. `quick.jar` is made of
`QuickJson.java` by `python -m tests.quick_jar`, and a test compares the two.
"""

import logging
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType

from headgate.engine.causes import short_cause
from headgate.engine.gateway.spark import talk_of
from headgate.engine.sql import text
from headgate.engine.verdict import FUNCTION

JAR: Final = Path(__file__).with_name("quick.jar")
CLASS: Final = "headgate.QuickJson"

log = logging.getLogger(__name__)


def is_installed(session: SparkSession, *, is_remote: bool) -> bool:
    """Whether this session has it from now on."""
    try:
        if is_remote:
            session.addArtifacts(str(JAR))
        else:
            session.sql(f"ADD JAR {text(str(JAR))}").collect()
        session.udf.registerJavaFunction(FUNCTION, CLASS, StringType())
    except (PySparkException, Py4JError, OSError) as error:
        log.info("spark.no_quick_function", extra={"why": short_cause(talk_of(error))})
        return False
    return True
