"""A finished batch whose numbers are easy to check by hand."""

from typing import Any

import numpy as np

from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS
from unskew.jobs.checkpoint.merge_state import MergePartition
from unskew.jobs.observe.batches.batch import BatchDone, Routing
from unskew.jobs.observe.batches.batch_stats import BatchStats, HotKey
from unskew.jobs.observe.board import Board


def progress(batch: int, **more: Any) -> dict[str, Any]:
    return {
        "batchId": batch,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": 999,
        "durationMs": {"triggerExecution": 1500, "addBatch": 1200, "walCommit": 30},
        "stateOperators": [
            {"numRowsTotal": 7, "memoryUsedBytes": 4096, "numRowsDroppedByWatermark": 2}
        ],
        "sources": [
            {
                "endOffset": '{"lines": {"0": 90, "1": 20}}',
                "latestOffset": {"lines": {"0": 100, "1": 20}},
            }
        ],
        **more,
    }


def stats(batch: int, names: bool = False) -> BatchStats:
    latencies = np.zeros((2, len(LATENCY_BOUNDS_SECONDS) + 1), np.int64)
    latencies[:, 3] = (30, 10)
    latencies[1, -1] = 1
    return BatchStats(
        batch,
        records=np.array([30, 10]),
        busy_seconds=np.array([0.5, 0.25]),
        numbers={
            "keys": np.array([3, 1]),
            "state_bytes": np.array([300, 100]),
            "latency_seconds": np.array([1.2, 0.6]),
        },
        latency_counts=latencies,
        under_key=np.array([35, 5]),
        under_key_seconds=np.array([0.65625, 0.09375]),
        replication=1.25,
        rejected={"not_utf8": 2},
        late_records=5,
        hot_keys=(
            HotKey(2**64 - 1, "x" * 500 if names else None, 20),
            HotKey(5, "b" if names else None, 10),
        ),
    )


def done(batch: int, names: bool = False) -> BatchDone:
    return BatchDone(
        progress(batch),
        stats(batch, names),
        Routing(2, 0.125, 4, {"head_keys": (1.5, 2.0)}),
        (MergePartition(0, None, 10), MergePartition(1, 6, 20)),
        journal_bytes=1000,
        journal_batches=batch + 1,
    )


def board_value(board: Board, name: str, *labels: str) -> Any:
    """One value of a board, by figure and labels; None if there is none."""
    return board._values.get(name, {}).get(labels)
