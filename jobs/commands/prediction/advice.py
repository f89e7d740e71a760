"""One sentence on what to take, why, and how much faster than today it is."""

from collections.abc import Sequence

from unskew.grouping.simulation.batch_cost import Prediction
from unskew.grouping.simulation.loads import HASHED, LOCAL, Work

CLOSE = 1.05
"""Ways within this ratio of the fastest count as equally fast."""
_BY_HAND = "By hand: mapInArrow on even splits, and a groupBy behind it."
_SPARK = (
    "Sums, counts and Spark's own sketches need none of this: groupBy combines them before its"
    " shuffle."
)


def choose(predictions: Sequence[Prediction]) -> Prediction:
    """The simplest way within CLOSE of the fastest: `none`, then `local`, then the fewest pairs."""
    best = min(each.seconds for each in predictions)
    close = [each for each in predictions if each.seconds <= CLOSE * best]
    by_way = {each.way: each for each in close}
    return by_way.get(HASHED) or by_way.get(LOCAL) or min(close, key=lambda each: each.pairs)


def advise(predictions: Sequence[Prediction], work: Work, today: str = HASHED) -> str:
    """Write one sentence of advice."""
    by_way = {each.way: each for each in predictions}
    chosen, now = choose(predictions), by_way[today]
    if chosen.way == HASHED:
        return f"You do not need Unskew for this job: {_describe_hashed(chosen, work)} {_SPARK}"
    gain = f"{now.seconds / chosen.seconds:.1f}x faster than today's {today} ({now.seconds:.2f} s)"
    if chosen.way == today:
        gain = "which it has already"
    if chosen.way == LOCAL:
        return (
            f"Take grouping local, {gain}: a batch takes {chosen.seconds:.2f} s when the operator"
            f" works where records are read, and no routing is more than 5 % faster. {_BY_HAND}"
            f" {_SPARK}"
        )
    local = by_way[LOCAL]
    return (
        f"Take grouping {chosen.way}, {gain}: a batch takes {chosen.seconds:.2f} s,"
        f" {_explain(chosen, now, local)} {_SPARK}"
    )


def _describe_hashed(chosen: Prediction, work: Work) -> str:
    seconds = f"a batch takes {chosen.seconds:.2f} s"
    if work.native:
        return (
            f"Spark computes its operator itself and combines before its shuffle (grouping none),"
            f" {seconds}, and no way is more than 5 % faster."
        )
    return f"by the key's hash {seconds}, and no way is more than 5 % faster."


def _explain(chosen: Prediction, now: Prediction, local: Prediction) -> str:
    """Say why the others are slower."""
    fullest = (
        f"its fullest partition has {chosen.max_over_mean:.2f}x the mean instead of"
        f" {now.max_over_mean:.2f}x"
    )
    ratio = local.seconds / chosen.seconds
    return (
        f"{fullest}, and at the source it would be {local.seconds:.2f} s ({ratio:.1f}x), with"
        f" {local.pairs / max(1.0, chosen.pairs):.1f} times as many pairs of a key and a task."
    )
