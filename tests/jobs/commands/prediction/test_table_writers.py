"""`unskew compare --table`: files and the slowest writer of each way, and one sentence."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.grouping.family.members import zipf_keys
from unskew.grouping.base import Int64s
from unskew.grouping.simulation.loads import KeyBatch, hash_as_spark
from unskew.jobs.__main__ import main
from unskew.jobs.commands.prediction.table_writers import (
    LevelOptions,
    Writers,
    advise,
    cut_partition,
    number_writers,
    predict_writers,
)

RECORDS, TASKS = 12_000, 4


def predict(z: float, partitions: int = 8) -> tuple[dict[str, Writers], list[KeyBatch]]:
    batches = [
        KeyBatch.from_hashes(zipf_keys(RECORDS, z, distinct=300, seed=seed)) for seed in range(2)
    ]
    return {each.way: each for each in predict_writers(batches, partitions, TASKS)}, batches


def test_files_are_those_of_each_value_in_each_writer() -> None:
    made, batches = predict(1.4)
    task = np.arange(RECORDS) // (RECORDS // TASKS)
    values = np.mean([batch.distinct for batch in batches])

    # Counted here by hand, pair by pair.
    unshuffled = [len(set(zip(batch.hashes.tolist(), task, strict=True))) for batch in batches]
    fullest = [np.bincount(hash_as_spark(batch.hashes, 8)).max() for batch in batches]

    assert made["none"].files == np.mean(unshuffled) > 2 * values
    assert made["none"].slowest_over_mean == 1.0
    assert made["hash"].files == values
    assert made["hash"].slowest_over_mean == np.mean(fullest) * 8 / RECORDS > 2
    assert made["level"].slowest_over_mean < 1.01
    assert made["level"].files <= values + TASKS * 7
    assert values <= made["REBALANCE"].files <= values + TASKS * 8
    assert made["level"].rows_of_file == RECORDS / made["level"].files


@pytest.mark.parametrize(
    ("hashed", "rebalanced", "begin"),
    [
        (1.04, 1.0, "You do not need Unskew for this table: repartition by its columns makes 300"),
        (3.0, 1.04, "You may not need Unskew for this table: a hint REBALANCE in foreachBatch"),
        (3.0, 1.2, "Take grouping level: 310 files a batch, and the fullest writer has 1.00x the"),
    ],
)
def test_the_advice_is_the_fewest_files_among_even_writers(
    hashed: float, rebalanced: float, begin: str
) -> None:
    ways = [
        Writers("hash", 300, 40, 40, hashed),
        Writers("REBALANCE", 301, 40, 40, rebalanced),
        Writers("level", 310, 40, 40, 1.0),
        Writers("none", 900, 40, 200, 1.0),
    ]
    assert advise(ways).startswith(begin)


def test_spark_cuts_between_tasks_and_merges_small_pieces() -> None:
    assert cut_partition([0, 1, 2, 3, 4, 5], 4) == [0, 3, 4, 5]
    assert cut_partition([10, 10, 10, 10], 20) == [0, 2]
    assert cut_partition([100], 20) == [0]  # what one task has is never cut
    assert cut_partition([18, 3, 18], 20) == [0, 2]
    assert cut_partition([18, 7, 18], 20) == [0, 1, 2]


def test_small_neighbours_share_a_writer_up_to_the_target() -> None:
    blocks = np.array([[3, 3], [0, 0], [2, 2], [9, 9], [1, 0], [4, 5], [0, 1]])
    writers = number_writers(blocks, 10)
    assert writers.tolist() == [[0, 0], [0, 0], [0, 0], [1, 2], [3, 3], [3, 3], [4, 4]]


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    numbers = np.random.default_rng(1).integers(0, 300, 4000)
    numbers[::2] = 0
    file = tmp_path / "values.txt"
    file.write_text("".join(f"country-{number}\n" for number in numbers))
    return file


def test_level_is_predicted_with_the_options_of_the_job() -> None:
    rng = np.random.default_rng(3)
    keys = (rng.zipf(1.6, 6000) % 300).astype(np.uint64) * np.uint64(2**61 - 1)
    sizes = [20 + 10 * (keys % np.uint64(40)).astype(np.int64)]
    batches = [KeyBatch.from_hashes(keys)]

    def level(sizes: list[Int64s] | None, file_cost: int = 0, **options: object) -> Writers:
        given = LevelOptions(options, sizes, file_cost)
        ways = predict_writers(batches, 8, 1, level=given)
        return next(each for each in ways if each.way == "level")

    assert level(None).slowest_over_mean < 1.01
    # Rows that are even are not even in bytes.
    assert level(sizes).slowest_over_mean > 1.05
    assert level(sizes, balance="bytes").slowest_over_mean < 1.01
    whole = level(sizes, balance="bytes", target_file_bytes=10**6)
    assert whole.files == batches[0].distinct
    assert whole.slowest_over_mean > 1.05
    # Who has more files has fewer bytes, where a file costs as much as forty rows.
    assert level(sizes, 10**4).slowest_over_mean > 1.15
    assert level(sizes, 10**4, balance="bytes").slowest_over_mean < 1.05


def test_the_command_shows_every_way_and_one_sentence(
    key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["compare", "--file", str(key_file), "--partitions", "8", "--table"]
    assert main(asked) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "4,000 of 4,000 records, 300 values; batches of 1,000 read by 8 tasks, 8 writers" in text
    shown = re.findall(r"(hash|REBALANCE|level|none) [0-9,]+ [0-9.]+ [0-9]+ ([0-9.]+)", text)
    assert [way for way, _ in shown] == ["hash", "REBALANCE", "level", "none"]
    assert float(dict(shown)["level"]) <= 1.05
    assert float(dict(shown)["hash"]) > 2
    assert " need Unskew for this table: a hint REBALANCE" in text

    assert main([*asked, "--sources", "2", "--batch-records", "2000", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["sources"], result["batch_records"]) == (2, 2000)
    assert result["advice"].endswith(".")
    assert [row["way"] for row in result["predictions"]] == ["hash", "REBALANCE", "level", "none"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_of_rows_is_asked_by_the_columns_of_its_table(root: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    numbers = (np.random.default_rng(2).zipf(1.5, 3000) % 50).tolist()
    lines = [json.dumps({"country": f"c{number}", "day": number % 2, "n": 1}) for number in numbers]
    (tmp_path / "in" / "0.json").write_text("\n".join(lines))
    job = {
        "name": "asked",
        "source": {"type": "files", "path": str(tmp_path / "in")},
        "decode": {"type": "json", "schema": "country STRING, day INT, n INT"},
        "operator": {"type": "rows"},
        "grouping": {"type": "level", "balance": "bytes", "target_file_bytes": 1 << 30},
        "partitions": 4,
        "sinks": [
            {
                "type": "table",
                "format": "delta",
                "path": str(tmp_path / "table"),
                "partition_by": ["country", "day"],
            }
        ],
        "dead_letters": {"type": "files", "path": str(tmp_path / "rejected")},
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    words = ["compare", "--table", str(tmp_path / "job.yaml"), "--sources", "1", "--json"]
    program = [sys.executable, "-m", "unskew", *words, "--batch-records", "3000"]
    done = subprocess.run(program, cwd=root, capture_output=True, text=True, check=True)

    answer = json.loads(done.stdout)
    values = len(set(numbers))
    made = {row["way"]: row for row in answer["predictions"]}
    assert (answer["values"], answer["sample"]["records"]) == (values, 3000)
    assert made["hash"]["files"] == made["none"]["files"] == values
    # By its options each value is one file.
    assert made["level"]["files"] == values
    assert min(made[way]["slowest_over_mean"] for way in ("level", "hash")) > 1.01
    assert not (tmp_path / "table").exists()
    assert not (tmp_path / "checkpoint").exists()


def test_what_a_table_has_no_use_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--partitions", "4", "--table", "--cost", "1us", "--html", "a.html", "--slots", "2"]
    assert main(["compare", "--trace", "zipf", *words]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"--{name}: has no effect with --table; remove it" for name in ("cost", "slots", "html")
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["word_count", "--table"], "operator word_count writes results, which are few"),
        (["events_to_delta"], "operator rows makes no partial results whose time could be"),
    ],
)
def test_a_job_is_asked_what_it_has(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    assert problem in capsys.readouterr().err
