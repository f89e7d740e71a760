"""A job that is killed, each time with another grouping and number of writers: every row is there
once. More seeds: `python -m tests.support.running.killed_tables --seeds 50`.
"""

import pytest

from tests.support.running.killed_tables import try_seed


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("how", ["parquet", "delta"])
def test_a_killed_job_leaves_every_row_once(how: str) -> None:
    outcome = try_seed(1, how)
    assert outcome.killed
    assert outcome.right, outcome
