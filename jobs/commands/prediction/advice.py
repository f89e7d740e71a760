"""One sentence on what to take, why, and how much faster than today it is."""

from collections.abc import Sequence

from unskew.grouping.choice.ways import WAYS as AUTO_WAYS
from unskew.grouping.simulation.batch_cost import Prediction
from unskew.grouping.simulation.loads import HASHED, LOCAL, Work

AUTO = "auto"
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
    chosen, now = choose(predictions), find_today(predictions, today)
    if chosen.way == HASHED:
        return f"You do not need Unskew for this job: {_describe_hashed(chosen, work)} {_SPARK}"
    gain = _describe_gain(chosen, now, today)
    if chosen.way == LOCAL:
        return (
            f"Take grouping local, {gain}: a batch takes {chosen.seconds:.2f} s when the operator"
            f" works where records are read, and no routing is more than 5 % faster. {_BY_HAND}"
            f" {_SPARK}"
        )
    return (
        f"Take grouping {chosen.way}, {gain}: a batch takes {chosen.seconds:.2f} s,"
        f" {_explain(chosen, now, predictions)} {_SPARK}"
    )


def find_today(predictions: Sequence[Prediction], today: str) -> Prediction:
    """Find what the job has now; of `auto` the fastest of its ways, which it would take."""
    if today == AUTO:
        return min((each for each in predictions if each.way in AUTO_WAYS), key=_get_seconds)
    return next(each for each in predictions if each.way == today)


def _get_seconds(prediction: Prediction) -> float:
    return prediction.seconds


def _describe_gain(chosen: Prediction, now: Prediction, today: str) -> str:
    if today == AUTO and chosen.way in AUTO_WAYS:
        return "which today's auto takes by itself"
    if chosen.way == today:
        return "which it has already"
    had = f"the {now.way} that today's auto takes" if today == AUTO else f"today's {today}"
    return f"{now.seconds / chosen.seconds:.1f}x faster than {had} ({now.seconds:.2f} s)"


def _describe_hashed(chosen: Prediction, work: Work) -> str:
    seconds = f"a batch takes {chosen.seconds:.2f} s"
    if work.native:
        return (
            f"Spark computes its operator itself and combines before its shuffle (grouping none),"
            f" {seconds}, and no way is more than 5 % faster."
        )
    return f"by the key's hash {seconds}, and no way is more than 5 % faster."


def _explain(chosen: Prediction, now: Prediction, predictions: Sequence[Prediction]) -> str:
    """Say why the others are slower."""
    fullest = (
        f"its fullest partition has {chosen.max_over_mean:.2f}x the mean instead of"
        f" {now.max_over_mean:.2f}x"
    )
    local = next((each for each in predictions if each.way == LOCAL), None)
    if local is None:
        return f"{fullest}."
    ratio = local.seconds / chosen.seconds
    return (
        f"{fullest}, and at the source it would be {local.seconds:.2f} s ({ratio:.1f}x), with"
        f" {local.pairs / max(1.0, chosen.pairs):.1f} times as many pairs of a key and a task."
    )
