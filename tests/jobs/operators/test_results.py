"""`operators` as a list: several results of one stream, each with its own key, where and sinks."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.dead_letters import dead_letters_in
from tests.support.oracles import START
from tests.support.running.in_process import utc, write_lines
from unskew.config.errors import ExternalError, UsageError
from unskew.config.explain import explain, write_yaml
from unskew.config.loader import load, load_job
from unskew.jobs.checkpoint.identity import check_identity, write_identity
from unskew.jobs.engine.samples.try_out import put_sinks_in_memory
from unskew.jobs.engine.service import Service
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.inspection import inspect
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query import source
from unskew.jobs.query.check_expressions import check_expressions
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare import keep_accepted, keep_rejected

FILE = """\
name: shop
source: {{type: files, path: {folder}/in, files_per_batch: 1}}
decode: {{type: json, schema: "user STRING, country STRING, cents BIGINT, at TIMESTAMP"}}
where: country != 'nowhere'
operators:
  - name: by_user
    key: user
    where: cents > 0
    columns: {{events: count(*), cents: sum(cents)}}
    sinks:
      - {{type: memory, table: by_user}}
      - {{type: memory, table: by_user_renamed, columns: {{who: user, events: events}}}}
  - name: by_country
    key: {{country: upper(country), sign: "cents > 0"}}
    columns: {{most: max(cents), mean: sum(cents) / count(*), users: {{distinct: user}}}}
    sinks: [{{type: memory, table: by_country}}]
event_time: at
window: 1 minute
lateness: 1 hour
grouping: level
partitions: 3
merge: {{partitions: 2, output: update}}
trigger: available_now
dead_letters: {{type: files, path: {folder}/rejected}}
checkpoint: {folder}/checkpoint
"""


def job_file(folder: Path, *changes: tuple[str, str]) -> Path:
    text = FILE.format(folder=folder)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "job.yaml").write_text(text)
    return folder / "job.yaml"


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            "    where: cents",
            "    were: cents",
            'operators[0].were: unknown key; did you mean "where',
        ),
        ("sum(cents)}", "sum(cent)}", 'operators[0].columns.cents: no column "cent"'),
        ("name: by_country", "name: by_user", 'operators: results of different names ("by_user"'),
        ("{type: memory, table: by_country}", "{type: kafka}", "operators[1].sinks[0].topic: mis"),
        (
            "who: user",
            "who: use",
            'operators[0].sinks[1].columns.who: the result "by_user" has no column "use"; did',
        ),
        ("    key: user", "    type: vwap\n    key: user", "operators[0].type: only aggregate has"),
        (
            "    sinks: [{type: memory, table: by_country}]\n",
            "",
            'operators[1].name: no sink takes the result "by_country"',
        ),
        ("where: country", "operator: {type: word_count}\nwhere: country", "operators contradicts"),
    ],
)
def test_mistakes_are_named_as_the_file_has_them(
    tmp_path: Path, before: str, after: str, line: str
) -> None:
    loaded = load(job_file(tmp_path, (before, after)))
    lines = loaded.lines()
    assert len(lines) == 1
    assert line in lines[0]


def test_samples_are_tried_with_sinks_in_memory_however_the_results_are_written(
    tmp_path: Path,
) -> None:
    short = job_file(tmp_path)
    written_out = tmp_path / "written_out.yaml"
    written_out.write_text(write_yaml(explain(str(short))))
    for file in map(str, (short, written_out)):
        job = load_job(file, put_sinks_in_memory(file))
        assert [(sink.result, sink.table) for sink in job.sinks] == [
            ("by_user", "unskew_results_by_user"),
            ("by_country", "unskew_results_by_country"),
        ]


def test_a_checkpoint_fixes_every_result_in_its_order(tmp_path: Path) -> None:
    write_identity(load_job(job_file(tmp_path)))
    (tmp_path / "checkpoint" / "offsets").mkdir()
    check_identity(load_job(job_file(tmp_path, ("cents > 0\n", "cents > 1\n"))))
    changed = load_job(job_file(tmp_path, ("max(cents)", "min(cents)")))
    with pytest.raises(ExternalError, match=r"operators\.by_country\.columns: was"):
        check_identity(changed)
    renamed = load_job(job_file(tmp_path, ("name: by_user", "name: by_customer")))
    with pytest.raises(ExternalError, match=r"operators: was by_user, by_country"):
        check_identity(renamed)


def test_partials_have_all_columns_whichever_results_have_rows(tmp_path: Path) -> None:
    texts = {"r0_key": "string", "r1_key": "string", "r1_key_1": "boolean"}
    given = make_operator(load_job(job_file(tmp_path)).operator)
    operator = given.with_types(dict.fromkeys(given.texts, "bigint") | texts)
    names = ["by_user", "by_country", "by_user"]
    strings, numbers = pa.array(["a", "b", "a"]), pa.array([1, 2, 4])
    columns: dict[str, Any] = {"key": names, "key_hash": [1, 2, 1], "pane": [0, 0, 0]}
    columns["event_time"] = pa.array([START] * 3, pa.timestamp("us", "UTC"))
    for name in (*operator.keys, *operator.inputs):
        kind = operator.key_types.get(name)
        columns.setdefault(name, strings if kind == "string" else numbers)
    columns["r1_key_1"] = pa.array([True, False, True])
    rows = pa.table(columns)
    made = operator.partial(rows)
    assert made.select(["key", "r0_key", "records"]).to_pylist() == [
        {"key": "by_user", "r0_key": "a", "records": 2},
        {"key": "by_country", "r0_key": None, "records": 1},
    ]
    assert set(operator.partial_columns) <= set(made.column_names)
    for part in (rows.slice(0, 1), rows.slice(1, 1), rows.slice(0, 0)):
        assert operator.partial(part).schema == made.schema


def events(count: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(3)
    return [
        {
            "user": f"u{min(int(generator.zipf(1.5)), 30)}",
            "country": ["de", "fr", "nowhere"][int(generator.integers(0, 3))],
            "cents": int(generator.integers(-20, 100)),
            "at": (START + timedelta(seconds=int(generator.integers(0, 120)))).isoformat(),
        }
        for _ in range(count)
    ]


class Batches(Follower):
    def __init__(self) -> None:
        self.done: list[BatchDone] = []

    def on_batch_done(self, done: BatchDone) -> None:
        self.done.append(done)


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


def last(spark: SparkSession, table: str, key: tuple[str, ...]) -> dict[Any, Any]:
    rows = [row.asDict() for row in spark.table(table).orderBy("batch_id").collect()]
    values: dict[Any, Any] = {}
    for row in rows:
        start = row.pop("window_start")
        del row["window_end"], row["batch_id"]
        values[start.isoformat()[:16], *(row.pop(name) for name in key)] = row
    return values


@dataclass
class Counted:
    """What plain Python counts of the records that `write_input` writes."""

    used: int = 0
    """Records that the job's own condition keeps."""
    unused: int = 0
    by_user: dict[Any, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Amounts by minute and user."""
    by_country: dict[Any, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    """Records by minute, country and sign."""


def write_input(folder: Path) -> Counted:
    """Three batches, in which are a null in a key, a missing time and two late records."""
    rows = events(400)
    without_user = {**rows[0], "user": None, "country": "de", "cents": 5}
    unwanted_without_time = {**without_user, "user": "u1", "cents": -1, "at": None}
    ahead = {**rows[0], "country": "de", "at": (START + timedelta(hours=3)).isoformat()}
    # Spark drops by the watermark of the batch before, which has seen the batch before that.
    unusual = [ahead, without_user, unwanted_without_time]
    write_lines(folder, "0.json", [*rows[:250], *unusual])
    write_lines(folder, "1.json", rows[250:])
    write_lines(folder, "2.json", [{**rows[0], "country": "de", "cents": n} for n in (5, -1)])
    used = [row for row in [*rows, ahead] if row["country"] != "nowhere"]
    counted = Counted(len(used), len(rows) + 1 - len(used))
    for row in used:
        if row["cents"] > 0:
            counted.by_user[row["at"][:16], row["user"]].append(row["cents"])
    for row in [*used, without_user]:
        key = row["at"][:16], row["country"].upper(), row["cents"] > 0
        counted.by_country[key].append(row)
    return counted


def assert_totals(spark: SparkSession, counted: Counted) -> None:
    assert last(spark, "by_user", ("user",)) == {
        key: {"events": len(values), "cents": sum(values)}
        for key, values in counted.by_user.items()
    }
    countries = last(spark, "by_country", ("country", "sign"))
    assert countries.keys() == counted.by_country.keys()
    for key, group in counted.by_country.items():
        cents = [row["cents"] for row in group]
        assert countries[key]["most"] == max(cents)
        assert countries[key]["mean"] == pytest.approx(sum(cents) / len(cents))
        users = len({row["user"] for row in group} - {None})
        assert countries[key]["users"] == pytest.approx(users, abs=1)
    assert spark.table("by_user_renamed").columns == ["who", "events", "batch_id"]


def assert_accounts(done: list[BatchDone], checkpoint: Path, counted: Counted) -> None:
    """Each result's account is whole, and `inspect` says what the displays were given."""
    inspected = inspect(str(checkpoint)).data()["batches"]
    accounts = [each["result_accounts"] for each in inspected if each["records"]]
    given = [each.result_accounts or {} for each in done]
    assert accounts == [{name: asdict(account) for name, account in each.items()} for each in given]
    for account in (account for each in given for account in each.values()):
        parts = account.counted, account.filtered, account.rejected, account.late
        assert account.read == sum(parts)
    assert sum(map(len, given)) == 6
    sums = {name: Counter[str]() for name in accounts[0]}
    for each in accounts:
        for name, account in each.items():
            sums[name].update(account)
    wanted = sum(map(len, counted.by_user.values()))
    assert sums == {
        "by_user": {
            "read": 405,
            "counted": wanted,
            "filtered": counted.unused + counted.used - wanted + 1,
            "rejected": 2,
            "late": 1,
        },
        "by_country": {
            "read": 405,
            "counted": counted.used + 1,
            "filtered": counted.unused,
            "rejected": 1,
            "late": 2,
        },
    }


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["level", "none"])
def test_each_result_has_its_own_totals_of_one_read(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    counted = write_input(tmp_path / "in")
    batches = Batches()
    job = load_job(job_file(tmp_path), {"grouping": grouping})
    check_expressions(spark, job)
    Service(job, spark, (batches,)).run()

    assert_totals(spark, counted)
    if grouping == "none":  # Spark alone reports no accounts
        return
    done = [each for each in batches.done if each.has_rows]
    assert_accounts(done, tmp_path / "checkpoint", counted)
    rejected = [dict(each.stats.rejected) for each in done if each.stats]
    assert rejected == [{"by_user_null_key": 1, "no_event_time": 1}, {}, {}]
    dead = dead_letters_in(tmp_path / "rejected")
    assert sorted(each["reason"] for each in dead) == ["by_user_null_key", "no_event_time"]


@pytest.mark.spark
@pytest.mark.parametrize("grouping", ["level", "none"])
def test_a_record_is_decoded_once_for_all_results(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    job = load_job(job_file(tmp_path), {"grouping": grouping})
    lines = source.read_static(spark, [b"{}"]).repartition(1)
    prepared, _ = prepare_records(decode(lines, job.decode, source.COLUMNS), job)
    for rows in (keep_accepted(prepared), keep_rejected(prepared)):
        assert (
            rows._jdf.queryExecution()
            .executedPlan()
            .toString()
            .count("from_json(StructField(user,")
            == 1
        )


@pytest.mark.spark
def test_expressions_are_named_by_their_entry(spark: SparkSession, tmp_path: Path) -> None:
    changes = (("sum(cents)}", "sum(country)}"), ("max(cents)", "max(no_such(cents))"))
    with pytest.raises(UsageError) as raised:
        check_expressions(spark, load_job(job_file(tmp_path, *changes)))
    assert any(p.startswith("operators[1].columns.most: ") for p in raised.value.problems)
    job = load_job(job_file(tmp_path, ("sum(cents)}", "sum(country)}")))
    with pytest.raises(UsageError, match=r"operators\[0\]\.columns\.cents: country: a number"):
        check_expressions(spark, job)
