import pytest

from headgate.engine.causes import CAUSE_MAX, has_no_room, is_about_settings, short_cause

TRACE = """An error occurred while calling o93.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2913)
Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(QueryExecutionErrors.scala:787)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 17 more
"""


def test_the_root_is_told_and_nothing_else() -> None:
    assert short_cause(TRACE) == "IOException: No space left on device"


def test_without_a_root_the_first_line_is_told() -> None:
    assert (
        short_cause("[PATH_NOT_FOUND] gone\n\nJVM stacktrace:\n\tat x.y") == "[PATH_NOT_FOUND] gone"
    )
    assert (
        short_cause("An error occurred while calling o1.x.\n: java.lang.Foo: bar\n\tat x")
        == "Foo: bar"
    )
    assert short_cause("java.lang.OutOfMemoryError") == "OutOfMemoryError"
    assert short_cause("") == "no reason was given"


def test_a_cause_has_an_end() -> None:
    assert len(short_cause("x" * 10_000)) == CAUSE_MAX


def test_a_full_disk_is_recognised() -> None:
    assert has_no_room(TRACE)
    assert not has_no_room("java.io.IOException: Permission denied")


def test_settings_and_files_are_told_apart() -> None:
    assert is_about_settings("[UNRESOLVED_COLUMN.WITH_SUGGESTION] x", is_analysis=True)
    assert not is_about_settings("[PATH_ALREADY_EXISTS] x", is_analysis=True)
    assert is_about_settings("[INVALID_DATETIME_PATTERN] x", is_analysis=False)
    assert not is_about_settings("[CAST_INVALID_INPUT] x", is_analysis=False)


def unread(url: str, cause: str) -> str:
    return f"""An error occurred while calling o93.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while \
reading file {url}.  SQLSTATE: KD001
\tat org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1.hasNext(FileScanRDD.scala:142)
Caused by: {cause}
\t... 17 more
"""


def test_a_file_that_is_cut_off_is_named_with_what_to_do() -> None:
    talk = unread(
        "file:///in/a%20b.json.gz", "java.io.EOFException: Unexpected end of input stream"
    )

    assert short_cause(talk) == (
        "/in/a b.json.gz is cut off (EOFException: Unexpected end of input stream); either way its "
        "own number stays as a gap on record; first: put a whole one into its place, which is read "
        "as a new file, or go without it: rm '/in/a b.json.gz'"
    )


def test_a_file_that_cannot_be_read_is_named() -> None:
    talk = unread("file:/in/x.parquet", "java.lang.RuntimeException: is not a Parquet file")

    assert short_cause(talk).startswith(
        "/in/x.parquet cannot be read (RuntimeException: is not a Parquet file); either way "
    )


def test_a_full_disk_is_recognised_though_a_file_was_being_read() -> None:
    assert has_no_room(unread("file:/in/x", "java.io.IOException: No space left on device"))


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("file:/in/orders.json", "java.io.IOException: Too many open files"),
        ("file:/l/_headgate/staging/s/f", "java.io.EOFException: Unexpected end of input stream"),
    ],
)
def test_nobody_is_told_to_remove_a_file_that_is_not_to_blame(url: str, cause: str) -> None:
    assert "rm " not in short_cause(unread(url, cause))
