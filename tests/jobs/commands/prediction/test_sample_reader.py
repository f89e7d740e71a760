"""What a job says of its sample."""

import os

import pytest

from unskew.jobs.commands.prediction.sample_reader import count_slots


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local", 1),
        ("local[2]", 2),
        ("local[16, 3]", 16),
        ("local[*]", os.cpu_count()),
        ("spark://host:7077", None),
        ("local-cluster[2,1,1024]", None),
    ],
)
def test_a_local_job_works_on_as_many_partitions_as_it_has_threads(
    master: str, slots: int | None
) -> None:
    assert count_slots(master) == slots
