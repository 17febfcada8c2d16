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
