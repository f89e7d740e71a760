"""What the sources of a batch agree on for the next, as the journal keeps it.

It follows from the states that they left, and from nothing else. The first source that asks reads
all of them and writes down what follows, since each of s sources would read s files: of two that
ask at the same moment both write the same, and the first file stays.
"""

import dataclasses

from unskew.grouping.base import Grouping
from unskew.grouping.snapshot import Arrays
from unskew.grouping.spark.journal import Journal, name_state

_NAME = "sources.agreed"


def read_agreed_before(journal: Journal, batch: int, router: Grouping) -> Arrays:
    """Read what sources agree on by the newest batch before `batch` that has states.

    States of another grouping, or with other options, agree on nothing.
    """
    like = router.snapshot()
    for number in journal.batches_before(batch):
        written = journal.read(number, _NAME)
        if written is None:
            states = journal.states(number)
            if not states:
                continue
            if any(state.kind != like.kind for state in states.values()):
                return {}
            for source, state in states.items():
                with journal.naming(number, name_state(source)):
                    router.check(state)
            agreed = router.agree([states[source].arrays for source in sorted(states)])
            written = dataclasses.replace(like, arrays=agreed)
            journal.write(number, _NAME, written.to_bytes())
        if written.kind != like.kind:
            return {}
        whole = {**like.arrays, **written.arrays}
        with journal.naming(number, _NAME):
            router.check(dataclasses.replace(written, arrays=whole))
        return written.arrays
    return {}
