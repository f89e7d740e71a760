"""What the journal keeps of `grouping: auto`, and states of several groupings in one journal."""

from pathlib import Path

import numpy as np
import pytest

from unskew.grouping.choice.decider import Expected
from unskew.grouping.choice.records import BatchChoice, Choice
from unskew.grouping.errors import SnapshotError
from unskew.grouping.registry import create
from unskew.grouping.spark.choice_file import (
    read_batch_choice,
    read_choices,
    read_known,
    write_batch_choice,
    write_choices,
)
from unskew.grouping.spark.journal import Journal

CHOICES = (Choice(0, "level", "a sample says so"), Choice(7, "local", "0.5 s less"))
OF_BATCH = BatchChoice("level", "local", "why", {"level": Expected(2.0, 0.25)}, 1.5, 70)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journal"))


def test_choices_are_read_as_they_were_written(journal: Journal) -> None:
    assert read_choices(journal) == ()
    write_choices(journal, CHOICES[:1])
    write_choices(journal, CHOICES)

    assert read_choices(journal) == CHOICES
    assert journal.batches() == []
    journal.drop_from(0)
    assert read_choices(journal) == CHOICES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 2, "choices": []}',
        '{"format": 1, "choices": [{"batch": 0}]}',
        '{"format": 1, "choices": [{"batch": 0, "way": "sideways", "why": ""}]}',
        '{"format": 1, "choices": [{"batch": "0", "way": "local", "why": ""}]}',
    ],
)
def test_choices_that_cannot_be_read_are_an_error_that_says_what_to_do(
    journal: Journal, text: str
) -> None:
    write_choices(journal, CHOICES)
    Path(journal.location, "choices").write_text(text)

    with pytest.raises(SnapshotError, match=r"choices: cannot be read .* restore the file"):
        read_choices(journal)


def test_what_is_known_is_that_of_the_newest_batch_before(journal: Journal) -> None:
    assert read_batch_choice(journal, 3) is None
    assert read_known(journal, 3, dict) is None
    write_batch_choice(journal, 3, OF_BATCH, {"way": "local"})
    write_batch_choice(journal, 5, OF_BATCH, {"way": "key"})

    assert read_batch_choice(journal, 3) == OF_BATCH
    assert read_known(journal, 4, dict) == (OF_BATCH, {"way": "local"})
    assert read_known(journal, 5, dict) == (OF_BATCH, {"way": "key"})
    assert read_known(journal, 2, dict) is None
    with pytest.raises(SnapshotError, match=r"batch\.choice"):
        read_known(journal, 5, lambda known: known["nothing"])


def test_a_grouping_goes_on_from_its_own_state_where_others_routed_in_between(
    journal: Journal,
) -> None:
    keys = np.repeat(np.arange(40, dtype=np.uint64), 5)
    routed = {}
    for batch, balance in enumerate(("records", "seconds")):
        grouping = create("level", partitions=4, balance=balance)
        grouping.route(keys[batch:])
        routed[balance] = grouping.snapshot()
        journal.write_state(batch, 0, grouping.snapshot())

    for balance, left in routed.items():
        again = create("level", partitions=4, balance=balance)
        journal.restore_before(2, 0, again, others=True)
        assert again.snapshot().checksum() == left.checksum()
    with pytest.raises(SnapshotError, match="options"):
        journal.restore_before(2, 0, create("level", partitions=4))
    fresh = create("level", partitions=4, seed=5)
    journal.restore_before(2, 0, fresh, others=True)
    assert (
        fresh.snapshot().checksum() == create("level", partitions=4, seed=5).snapshot().checksum()
    )
