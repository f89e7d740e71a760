"""Jobs that are killed, each time with another grouping and number of writers: every row is there
once. More: `python -m tests.support.running.killed_tables --rounds 50`.
"""

import pytest

from tests.support.running.killed_tables import try_round


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("executors", [False, True], ids=["driver", "executors"])
def test_killed_jobs_leave_every_row_once(executors: bool) -> None:
    done = try_round(1, executors=executors)
    assert done.kills
    assert done.tables == {"parquet": 3, "delta": 3}
    assert (done.wrong, done.left) == ([], 0), done
