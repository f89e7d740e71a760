import errno
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.checkpoints import REPORTS_OF_VERSION_3, copy_checkpoint
from tests.support.running.in_process import Ran, write_lines
from unskew.config.errors import ExternalError, UnskewError
from unskew.config.loader import load_job
from unskew.jobs.engine.spark_errors import explain_spark_error, shorten, translate_spark_errors

JOB = load_job("word_count")
FRAMES = "".join(f'  File "worker.py", line {line}, in main\n    process()\n' for line in range(30))
DISK_FULL_IN_A_TASK = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    f"{FRAMES}OSError: [Errno 28] No space left on device: '/c/unskew/000000000001'\n\n\tat a.b(C)"
)
STATE_CUT_SHORT = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 4.0 failed"
    " 4 times, most recent failure: Lost task 1.3 in stage 4.0 (TID 9) (h executor driver):"
    " org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred"
    " during loading state. SQLSTATE: 58030\n\tat a.b(C.scala)\nCaused by: java.io.EOFException\n"
)
STATE_HELD = (
    "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR] An error"
    " occurred during loading state. The StateStoreId was not released by a thread\n"
)
LOST_IN_A_CALLBACK = (
    "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback"
    f" (most recent call last):\n{FRAMES}unskew.jobs.sinks.result_writer.BatchWriteError:"
    " py4j.protocol.Py4JJavaError: An error occurred while calling o9.save.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure\n"
    "Caused by: org.apache.spark.SparkException: [KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE]"
    " Some data may have been lost because they are not available in Kafka any more;\n"
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            (
                "org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A"
                " column with name `nope` cannot be resolved. Did you mean [`value`]?"
                " SQLSTATE: 42703;\n"
                "'Project ['nope]\n+- Relation"
            ),
            "A column with name `nope` cannot be resolved. Did you mean [`value`]?",
        ),
        (
            (
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                '  File "x.py", line 1, in f\n    raise SnapshotError()\n'
                "unskew.grouping.errors.SnapshotError: journal: /c/1: damaged; restore it\n\n\tat a"
            ),
            "journal: /c/1: damaged; restore it",
        ),
        (
            (
                "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
                '  File "x.py", line 1, in f\nValueError: not so\n\tat a.b(C.java)'
            ),
            "ValueError: not so",
        ),
        (
            (
                "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage"
                " 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage 1.0 (TID 3) (h"
                " executor driver): java.io.IOException: the disk is gone\n\tat a.b(C.java)\n"
            ),
            "IOException: the disk is gone",
        ),
        (
            (
                "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message:"
                ' Traceback (most recent call last):\n  File "x.py", line 1, in f\n'
                "py4j.protocol.Py4JJavaError: An error occurred while calling o9.collect.\n"
                ": org.apache.spark.SparkException: Job aborted due to stage failure\n"
                "\tat a.b(C.java)\nCaused by: java.io.IOException: not so\n\t... 9 more\n"
                "Caused by: org.apache.hadoop.fs.ChecksumException: Checksum: file:/c/1 at 0\n"
            ),
            "ChecksumException: Checksum: file:/c/1 at 0",
        ),
        ("java.net.ConnectException: Connection refused", "ConnectException: Connection refused"),
        ("java.lang.OutOfMemoryError", "OutOfMemoryError"),
        ("", "it failed without a reason"),
    ],
)
def test_one_line_is_left_of_a_trace(text: str, line: str) -> None:
    assert shorten(text) == line


@pytest.mark.parametrize("blank", [" ", "\n", " \n", "\t"])
def test_a_long_run_of_blanks_costs_little(blank: str) -> None:
    begin = time.process_time()
    for text in (f"java.io.IOException: gone{blank * 16_000}x", f"{blank * 16_000}gone"):
        assert "gone" in shorten(text)
    assert time.process_time() - begin < 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (DISK_FULL_IN_A_TASK, "no space left on device: make room"),
        (LOST_IN_A_CALLBACK, "source.fail_on_data_loss: false"),
        ("IllegalStateException: Cannot fetch offset 5 (GroupId: g)", "fail_on_data_loss: false"),
        ("[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost", "fail_on_data_loss"),
        ("UnknownTopicOrPartitionException: This server does not host this", "a topic is not"),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log", "another query writes"),
        ("java.io.IOException: No space left on device", "make room"),
        ("TimeoutException: Timed out waiting for a node assignment", "Kafka does not answer"),
        (STATE_CUT_SHORT, f"checkpoint: {JOB.checkpoint}/state: the merge's state cannot be"),
        (STATE_HELD, "The StateStoreId was not released"),
        (f"{STATE_CUT_SHORT}No space left on device", "make room"),
        ("x" * 600 + "No space left on device", "x" * 100),
    ],
)
def test_known_errors_are_explained(text: str, part: str) -> None:
    line = explain_spark_error(JOB, RuntimeError(text))
    assert line.startswith("word_count: ")
    assert part in line
    assert "\n" not in line


@pytest.mark.spark
def test_an_expression_that_spark_rejects_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "in", "1.json", [{"text": "a"}])
    with pytest.raises(UnskewError) as failed:
        Ran(
            spark,
            tmp_path,
            "rejected",
            operator={"type": "word_count", "text": "text"},
            event_time="no_such_function(at)",
        )
    (line,) = str(failed.value).splitlines()
    assert line.startswith("totals: ")
    assert "no_such_function" in line
    assert "SQLSTATE" not in line


@pytest.mark.parametrize("damaged", ["offsets/2", None])
def test_a_damaged_log_of_spark_is_named(tmp_path: Path, damaged: str | None) -> None:
    checkpoint = tmp_path / "checkpoint"
    copy_checkpoint(REPORTS_OF_VERSION_3, checkpoint, tmp_path / "in")
    if damaged:
        (checkpoint / damaged).write_text("v1\n")
    job = JOB.model_copy(update={"checkpoint": str(checkpoint)})
    line = explain_spark_error(job, RuntimeError("IllegalStateException: Incomplete log file"))
    assert f"{checkpoint}/{damaged or ''}".rstrip("/") in line
    assert "restore it" in line
    assert "\n" not in line


def test_a_full_disk_under_the_drivers_own_files_is_one_line() -> None:
    with pytest.raises(ExternalError, match=r"^word_count: no space left on device: make room;"):
        raise_translated(OSError(errno.ENOSPC, "No space left on device", "/c/unskew/owner"))
    with pytest.raises(PermissionError):
        raise_translated(PermissionError(errno.EACCES, "Permission denied"))


def raise_translated(error: OSError) -> None:
    with translate_spark_errors(JOB):
        raise error
