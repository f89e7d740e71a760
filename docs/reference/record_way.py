"""The way of one record from Kafka to Prometheus: `python -m docs.reference.record_way [--check]`.

Runs `word_count` under `level` on a real Kafka and a real Spark, with the driver and its Python
workers traced, and writes into docs/ARCHITECTURE.md which of the project's functions are entered,
file by file.

The way has five stretches: the driver plans the query, a source's task routes, a partition's task
makes partials, the driver takes up the finished batch, Prometheus asks. Of each stretch the list
has every function once, under its file, in the order of first calls; numba reports calls of
compiled functions from Python as calls, too. A *turn back* is a file in a stretch that an earlier
stretch had left.

Left out is what handles neither the record nor its batch's figures: `config/` and what makes parts
from options (OMITTED), tools that hold no step of their own (PASSED_OVER), and the sinks, which are
not on the way to Prometheus.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from docs.reference.trace import FOLDER, Call, Tracer, read_calls
from docs.reference.write_or_check import section, with_section, write_or_check

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
MARK = "record-way"
PLAN = "The driver plans the query"
ROUTE = "A source's task routes"
PARTIAL = "A partition's task makes partials"
BATCH = "The driver takes up the finished batch"
SCRAPE = "Prometheus asks"
STRETCHES = {
    Call("jobs/query/pipeline.py", "Pipeline.build_results"): PLAN,
    Call("grouping/spark/router.py", "Router.route_keys"): ROUTE,
    Call("grouping/spark/router.py", "Router._route"): ROUTE,
    Call("jobs/query/partial.py", "PartialStage.__call__"): PARTIAL,
    Call("jobs/engine/service.py", "Service._after_batch"): BATCH,
    Call("jobs/observe/web/server.py", "_Handler.do_GET"): SCRAPE,
}
OMITTED = {
    Call("grouping/algorithms/level.py", "Level.wants_sizes"): "says which columns are needed",
    Call("grouping/base.py", "Grouping.wants_timestamps"): "says which columns are needed",
    Call("grouping/registry.py", "create"): "makes a grouping of its options",
    Call(
        "grouping/spark/journal.py", "Journal.__reduce__"
    ): "sends the journal's location to tasks",
    Call("grouping/spark/router.py", "read_task_position"): "asks Spark for batch and partition",
    Call("grouping/spark/warm_up.py", "warm_up"): "routes made-up records",
    Call("grouping/spark/warm_up.py", "start_workers"): "starts Spark's Python workers",
    Call("grouping/spark/locations.py", "open_location"): "opens a filesystem",
    Call("jobs/operators/registry.py", "make_operator"): "makes an operator of its options",
    Call("jobs/operators/registry.py", "is_computed_by_spark"): "looks at the job",
    Call("jobs/kafka/options.py", "make_connection_options"): "makes options for Spark",
    Call("jobs/engine/service.py", "Service._publish"): "writes rejected records",
    Call("jobs/engine/stage_times.py", "SparkJobs.read_stages"): "asks Spark when its stages ran",
    Call("jobs/engine/stage_times.py", "StageTimes.read_batch"): "takes the stages' times",
    Call("jobs/engine/service.py", "Service._publish_newest"): "writes rejected records",
    Call(
        "jobs/observe/batches/rejected_samples.py", "read_rejected_rows"
    ): "reads some rejected records for the live page",
    Call(
        "jobs/observe/batches/rejected_samples.py", "make_samples"
    ): "makes them for the live page",
    Call("jobs/observe/health.py", "Health.state"): "tells the query's state",
}
PASSED_OVER = (
    "config/",
    # Tools that many call and that hold no step: compiled loops, hashing, checks of arguments, the
    # parts of an algorithm, the bytes of a snapshot, reading a file, making a folder.
    "grouping/arguments.py",
    "grouping/cache.py",
    "grouping/contents.py",
    "grouping/hashing.py",
    "grouping/kernels.py",
    "grouping/parts/",
    "grouping/snapshot.py",
    "grouping/spark/agreed_file.py",
    "grouping/spark/private_files.py",
    "grouping/spark/rejected_file.py",
    "grouping/spark/routing_file.py",
    "grouping/spark/whole_files.py",
    "jobs/checkpoint/fenced_logs.py",
    "jobs/checkpoint/files.py",
    "jobs/checkpoint/hash_key.py",
    # What tells rejected records from the others, and bounds what one of them may take.
    "jobs/query/bounds/",
    "jobs/query/expressions.py",
    "jobs/engine/rejected_share.py",
    "jobs/query/rejected.py",
    # What takes another grouping (`auto`): this job has one.
    "jobs/engine/choosing/",
    "jobs/observe/choices/",
    # What says which files a batch added to a table: this job has none.
    "jobs/engine/table_writers.py",
    "jobs/observe/batches/written.py",
    # What keeps Spark's own counts of a batch, for `inspect` alone.
    "jobs/observe/batches/spark_counts.py",
    "jobs/operators/user_code/failing_rows.py",
    # What operators open for a key: this job's opens nothing.
    "jobs/operators/user_code/opened.py",
    # What turns clients of the page away.
    "jobs/observe/web/connections.py",
    "jobs/observe/web/host_names.py",
)
_WHOLE = re.compile(r"^With what is left out: (\d+) files, (\d+) turns back\.$", re.MULTILINE)
_LINES = (b"to be or not to be", b"that is the question")


class Length(NamedTuple):
    """How long a way is."""

    files: int
    turns_back: int


def tracer() -> Tracer:
    """Make the tracer of the driver and of each of its workers."""
    return Tracer(ROOT, STRETCHES, frozenset(OMITTED), PASSED_OVER)


def run() -> None:
    """Run the job over two batches, then ask for its metrics."""
    from confluent_kafka import Producer  # noqa: PLC0415 - workers import this module too

    from unskew.config.loader import load_job  # noqa: PLC0415
    from unskew.jobs.engine.service import run_in_session  # noqa: PLC0415
    from unskew.jobs.kafka.broker import Broker  # noqa: PLC0415
    from unskew.jobs.observe.board import make_board  # noqa: PLC0415
    from unskew.jobs.observe.health import Health, compute_stall_seconds  # noqa: PLC0415
    from unskew.jobs.observe.web.server import MetricsServer  # noqa: PLC0415

    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        job = load_job(
            "word_count",
            {
                "source.bootstrap_servers": broker.address,
                "source.records_per_batch": len(_LINES),
                "partitions": 2,
                "merge.partitions": 1,
                "trigger": {"type": "available_now"},
                "metrics.port": "auto",
                "checkpoint": f"{folder}/checkpoint",
                "spark": {
                    "spark.master": "local[2]",
                    "spark.python.daemon.module": "docs.reference.traced_workers",
                },
            },
        )
        broker.create_topics(["lines", "word-counts"])
        producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
        for line in _LINES * 2:
            producer.produce("lines", line)
        assert producer.flush(30) == 0
        health = Health(compute_stall_seconds(job))
        board = make_board(job, health)
        tracer().start()
        with MetricsServer(job.metrics, board, health) as server:
            run_in_session(job, board)
            urlopen(server.url).close()  # noqa: S310 - the job's own page


def trace() -> tuple[dict[str, list[Call]], Length]:
    """The calls of each stretch of such a run, in order, and how long it is with all calls."""
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own, where no Spark session is yet.
        environment = {**os.environ, FOLDER: folder, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", "from docs.reference.record_way import run; run()"]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        way, whole = (read_calls(Path(folder), all_calls=all_calls) for all_calls in (False, True))
        return way, measure(whole.values())


def first_lines(file: str) -> dict[str, str]:
    """Read the first line of the docstring of each function of a file."""
    lines: dict[str, str] = {}

    def read(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                name = f"{prefix}{child.name}"
                if isinstance(child, ast.FunctionDef):
                    lines[name] = (ast.get_docstring(child) or "").partition("\n")[0]
                read(child, f"{name}.")

    read(ast.parse((ROOT / file).read_text()), "")
    return lines


def by_file(calls: Iterable[Call]) -> dict[str, list[str]]:
    """The functions of each file, both in the order of first calls."""
    files: dict[str, list[str]] = {}
    for call in calls:
        files.setdefault(call.file, []).append(call.function)
    return files


def written(stretches: Mapping[str, Iterable[Call]], whole: Length) -> str:
    """The way as it stands in the page; `whole` is how long it is if nothing is left out."""
    parts: list[str] = []
    visited: set[str] = set()
    for stretch, calls in stretches.items():
        parts.append(f"\n{stretch}:\n\n")
        for file, names in by_file(calls).items():
            lines = first_lines(file)
            about = next((lines[name] for name in names if lines.get(name)), "")
            functions = ", ".join(f"`{name}`" for name in names)
            back = " (turn back)" if file in visited else ""
            parts.append(f"- `{file}`{back}: {functions} - {about}\n")
        visited.update(by_file(calls))
    parts.append(f"\nWith what is left out: {whole.files} files, {whole.turns_back} turns back.\n")
    return "".join(parts) + "\n"


def read_way(page: str) -> dict[str, list[Call]]:
    """The calls of each stretch that the page lists."""
    stretches: dict[str, list[Call]] = {}
    calls: list[Call] = []
    for line in section(page, MARK).splitlines():
        match = re.match(r"- `(.+?)`.*?: (`.+?`) - ", line)
        if match:
            calls += [Call(match.group(1), name) for name in re.findall("`(.+?)`", match.group(2))]
        elif line and not _WHOLE.match(line):
            calls = stretches.setdefault(line.removesuffix(":"), [])
    return stretches


def read_whole(page: str) -> Length:
    """How long the way is with all calls, as the page says."""
    match = _WHOLE.search(section(page, MARK))
    assert match, f"no {_WHOLE.pattern}"
    return Length(*map(int, match.groups()))


def measure(stretches: Iterable[Iterable[Call]]) -> Length:
    """How many files a way has, and how many turns back."""
    ways = [list(calls) for calls in stretches]
    return Length(len({call.file for calls in ways for call in calls}), turns_back(ways))


def turns_back(stretches: Iterable[Iterable[Call]]) -> int:
    """How often a stretch enters a file that an earlier stretch had left."""
    turns = 0
    visited: set[str] = set()
    for calls in stretches:
        files = {call.file for call in calls}
        turns += len(files & visited)
        visited |= files
    return turns


def main(words: list[str]) -> int:
    """Write the way into the page, or check that the page has it."""
    text = PAGE.read_text("utf-8")
    way = {PAGE: with_section(text, MARK, written(*trace()))}
    return write_or_check(words, lambda: way, "python -m docs.reference.record_way")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
