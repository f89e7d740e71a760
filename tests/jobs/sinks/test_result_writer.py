"""What Spark is given of a batch that could not be written."""

from unskew.jobs.engine.spark_errors import shorten
from unskew.jobs.sinks.result_writer import shorten_java_error

FRAMES = "".join(f"\tat org.apache.spark.Some$Class.method(File.scala:{n})\n" for n in range(400))
INTERRUPTED = (
    "An error occurred while calling o9.save.\n"
    f": org.apache.spark.SparkException: aborted\n{FRAMES}"
    f"Caused by: java.io.IOException: {'long ' * 400}\n{FRAMES}"
    f"Caused by: java.lang.RuntimeException: wrapped\n{FRAMES}"
    "Caused by: java.lang.InterruptedException: sleep\n"
)


def test_a_long_java_trace_is_cut_to_its_causes() -> None:
    text = shorten_java_error(INTERRUPTED)
    # Spark's pattern for interruptions needs several stack frames a character, of 1 MiB in all.
    assert len(text) < 1300
    begin = "py4j.protocol.Py4JJavaError: An error occurred while calling"
    assert text.startswith(begin), "what Spark's pattern begins with"
    assert text.endswith("java.lang.InterruptedException: sleep")


def test_the_job_still_says_the_innermost_cause() -> None:
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n'
    raised = f"unskew.jobs.sinks.result_writer.BatchWriteError: {shorten_java_error(INTERRUPTED)}"
    error = f"{trace}{raised}"
    assert shorten(error) == "InterruptedException: sleep"
