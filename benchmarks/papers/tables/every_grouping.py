"""The last table: every grouping on every paper's own metric."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.papers.definitions import Measure, Ratio, Run, Value
from unskew.grouping.registry import GROUPINGS

RECORDS = 1_000_000
READ_AHEAD = ("level", "whole", "prompt")
"""They see a batch before they route it, so they get the stream in batches."""
BATCH = 100_000


@dataclass(frozen=True)
class Column:
    """A metric, by the paper that measures with it."""

    paper: str
    metric: str
    conditions: str
    of: Callable[[str], Measure]


def run(grouping: str, trace: str, n: int, sources: int, more: str = "") -> Run:
    """A stream, in batches for a grouping that reads ahead."""
    if grouping in READ_AHEAD:
        more = f"{more} --batch-records {BATCH}"
    return Run(grouping, f"{trace},records={RECORDS}", n, sources, more.strip())


def _balance(grouping: str) -> Measure:
    return Value(run(grouping, "zipf:z=1.4,keys=10000", 100, 5), "imbalance")


def _drift(grouping: str) -> Run:
    more = "--cost-us 100 --arrival-per-second 1280000"
    return run(grouping, "zipf-drift:z=1.4,keys=100000,runs=1", 128, 5, more)


def _worst(grouping: str) -> str:
    # A batch is the time within which a grouping that reads ahead is to be even.
    if grouping in READ_AHEAD:
        return "batches.max_over_mean_max"
    return "over_time.window_max_over_mean.max"


def _words(grouping: str) -> Run:
    return run(grouping, "zipf:z=1.01,keys=5700000", 128, 1, "--cost-us 100")


def _country(grouping: str) -> Run:
    return run(grouping, "country:r=80,records_per_second=1000", 10, 5)


def _keys(grouping: str) -> Run:
    trace = "zipf:z=0.8,keys=100000"
    more = f"--batch-records {BATCH} --head-theta 1"
    return Run(grouping, f"{trace},records={BATCH}", 20, 1, more)


def _posg(grouping: str) -> Run:
    more = "--utilisation 1"
    if grouping == "posg":
        more += " --reports completed --feedback-records 64"
    return run(grouping, "posg-costs:z=1", 5, 1, more)


COLUMNS = (
    Column("001", "imbalance", "z = 1.4, 10^4 keys, n = 100", _balance),
    Column("000", "time / SG", "ZF, z = 1.4, n = 128",
           lambda name: Ratio(Value(_drift(name), "execution_seconds"),
                              Value(_drift("shuffle"), "execution_seconds"))),
    Column("000", "worst fiftieth or batch, max / mean", "the same",
           lambda name: Value(_drift(name), _worst(name))),
    Column("000", "memory / FG", "the same",
           lambda name: Ratio(Value(_drift(name), "pairs"), Value(_drift("key"), "pairs"))),
    Column("002", "throughput / PKG", "TW, n = 128",
           lambda name: Ratio(Value(_words(name), "throughput_per_second"),
                              Value(_words("partial_key"), "throughput_per_second"))),
    Column("003", "StdDev, percent", "country-skew r80, n = 10",
           lambda name: Value(_country(name), "stddev")),
    Column("003", "DistCost", "the same", lambda name: Value(_country(name), "dist_cost")),
    Column("004", "mean time, speed-up over RR", "Zipf-1.0, 64 costs, n = 5",
           lambda name: Ratio(Value(_posg("shuffle"), "latency_mean_ms"),
                              Value(_posg(name), "latency_mean_ms"))),
    Column("Prompt", "most keys of a partition / mean", "one batch, z = 0.8, 10^5 keys, n = 20",
           lambda name: Value(_keys(name), "keys_max_over_mean")),
)  # fmt: skip
NAMES = tuple(GROUPINGS)


def every_run() -> tuple[Run, ...]:
    """All that the table needs."""
    runs = [run for column in COLUMNS for name in NAMES for run in column.of(name).runs]
    return tuple(dict.fromkeys(runs))
