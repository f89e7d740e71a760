"""Rejected records that are too large for a task's rows: read again from the source, once."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.support.dead_letters import dead_letters_in
from tests.support.oracles import START
from tests.support.running.in_process import CountsReads, Ran, job_over, write_lines
from unskew import load_job
from unskew.config.models.job import Job
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query import source
from unskew.jobs.query.bounds.batch_bytes import MOST_BYTES, choose_batch_bytes
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare import REJECTED
from unskew.jobs.query.rejected import TEXT_BYTES_MAX, make_packed, pack_rejected

pytestmark = pytest.mark.spark

OF_WORDS: dict[str, Any] = {
    "operator": {"type": "word_count", "text": "text"},
    "window": {"type": "none"},
    "lateness": None,
}
AT = {"at": START.isoformat()}
LARGE = "€" * 40_000
MARK = "dead-letters.published"


def write_batches(folder: Path) -> None:
    """Three batches: one with a large rejected record, one with small ones, one with none."""
    words = [{"text": f"w{number % 9}", **AT} for number in range(60)]
    small, large = {"text": None, **AT}, {"text": None, "more": LARGE, **AT}
    write_lines(folder / "in", "0.json", [*words, small, large, small])
    write_lines(folder / "in", "1.json", [*words, small, small])
    write_lines(folder / "in", "2.json", words)


def lengths(folder: Path) -> list[int]:
    return sorted(len(row["value"]) for row in dead_letters_in(folder / "bad"))


@pytest.mark.parametrize("grouping", ["level", "local"])
def test_their_batch_is_read_again_and_each_is_written_once(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    CountsReads.reads.clear()
    write_batches(tmp_path)
    settings = {**OF_WORDS, "grouping": {"type": grouping}}
    ran = Ran(spark, tmp_path, "job", pipeline=CountsReads, **settings)
    assert ran.rejected == {"null_key": 5}
    assert len(CountsReads.reads) == 1
    written = lengths(tmp_path)
    assert len(written) == 5
    assert written[-1] > len(LARGE) > 100 * written[-2]
    counts = {key: row["count"] for (key,), row in ran.last.items()}
    assert sum(counts.values()) == 180
    assert len(ran.batches[0].samples) == 3

    # As a crash leaves it before the dead letters are marked as written.
    (Path(ran.journal.location) / f"{0:012d}" / MARK).unlink()
    shutil.rmtree(tmp_path / "bad" / "batch_id=0")
    Ran(spark, tmp_path, "job", pipeline=CountsReads, **settings)
    assert len(CountsReads.reads) == 2
    # The small ones of that batch had left the journal; those of the source have not.
    assert lengths(tmp_path) == written


def test_where_the_source_cannot_say_it_each_has_its_reason(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "unskew.jobs.engine.rejected_batches"
    monkeypatch.setattr(f"{module}.read_source_range", lambda *_: None)
    write_batches(tmp_path)
    Ran(spark, tmp_path, "job", **OF_WORDS, grouping={"type": "level"})
    rows = dead_letters_in(tmp_path / "bad")
    assert [row["reason"] for row in rows] == ["null_key"] * 5
    (large,) = [row for row in rows if "value" not in row]
    assert large["topic"].endswith("0.json")


def test_a_key_that_is_too_long_stays_behind_and_its_record_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{"symbol": key, "price": "1", "volume": 1, **AT} for key in ("a", LARGE, "b" * 2500)]
    write_lines(tmp_path / "in", "0.json", rows)
    ran = Ran(
        spark,
        tmp_path,
        "job",
        operator={"type": "vwap"},
        window={"type": "none"},
        lateness=None,
        grouping={"type": "level"},
    )
    assert ran.rejected == {"key_too_long": 2}
    assert list(ran.last) == [("a",)]
    assert lengths(tmp_path)[-1] > len(LARGE)


def texts_of(spark: SparkSession, sizes: list[tuple[int, int, int]]) -> pa.Table:
    """The texts of rejected records whose key, value and topic have so many bytes."""
    of = {"key": "k", "value": "v", "topic": "t"}
    made = spark.createDataFrame(sizes, "key INT, value INT, topic INT").select(
        *[sf.repeat(sf.lit(text), sf.col(name)).alias(name) for name, text in of.items()],
        sf.lit(2**31 - 1).alias("partition"),
        sf.lit(2**63 - 1).alias("offset"),
        sf.current_timestamp().alias("timestamp"),
    )
    record = sf.struct(
        sf.lit("r" * 150).alias("reason"),
        *[sf.col(name).cast("binary").alias(name) for name in ("key", "value")],
        *made.columns[2:],
    )
    rows = made.select(record.alias(REJECTED))
    return rows.select(make_packed(rows).alias("text")).toArrow()


def test_no_text_is_longer_than_is_said(spark: SparkSession) -> None:
    sizes = [0, 1, 400, 511, 513, 1500, 3070, 3072, 3073, 5000, 2_000_000]
    cases = [(a, b, c) for a in sizes for b in sizes for c in sizes if a + b + c < 2_100_000]
    texts = texts_of(spark, cases)["text"]
    longest = pc.max(pc.binary_length(texts)).as_py()
    assert TEXT_BYTES_MAX * 0.8 < longest <= TEXT_BYTES_MAX
    left = pc.match_substring(texts, '"left":true').to_pylist()
    assert left == [sum(case) > 3072 for case in cases]


def settings_of(spark: SparkSession, job: Job) -> dict[str, str]:
    prepared, operator = prepare_records(
        decode(source.read_static(spark, [b"{}"]), job.decode, source.COLUMNS), job
    )
    return choose_batch_bytes(pack_rejected(prepared, operator), operator, job)


@pytest.mark.parametrize("name", ["word_count", "vwap", "hashtags"])
def test_of_small_rows_spark_counts_no_bytes(spark: SparkSession, name: str) -> None:
    assert settings_of(spark, load_job(name, {"checkpoint": "unused"})) == {
        MOST_BYTES: str(2**31 - 1)
    }
    longer = load_job(name, {"checkpoint": "unused", "max_key_bytes": "8 KiB"})
    assert settings_of(spark, longer) == {}


def test_of_rows_with_texts_it_does(spark: SparkSession, tmp_path: Path) -> None:
    longest = {"type": "aggregate", "key": "symbol", "columns": {"longest": "max(text)"}}
    files = {"type": "files", "path": str(tmp_path / "in")}
    job = job_over(files, tmp_path, "job", operator=longest)
    assert "text" in " ".join(make_operator(job.operator).inputs.values())
    assert settings_of(spark, job) == {}


def test_who_sets_it_keeps_it(spark: SparkSession) -> None:
    job = load_job("word_count", {"checkpoint": "unused"})
    for name in (MOST_BYTES, "spark.sql.execution.arrow.maxRecordsPerBatch"):
        spark.conf.set(name, "1000")
        try:
            assert settings_of(spark, job) == {}
        finally:
            spark.conf.unset(name)


def test_a_query_starts_with_it_and_leaves_the_session_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", "0.json", [{"text": "w", **AT}])
    ran = Ran(spark, tmp_path, "job", **OF_WORDS, grouping={"type": "level"})
    query: Any = ran.query._jsq
    execution = query.streamingQuery().lastExecution().sparkSession()
    assert execution.conf().get(MOST_BYTES) == str(2**31 - 1)
    assert spark.conf.get(MOST_BYTES, None) is None
