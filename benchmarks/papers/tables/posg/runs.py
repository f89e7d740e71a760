"""Paper 004's streams, with the variants of POSG that are measured on them."""

from benchmarks.papers.definitions import Measure, Ratio, Run, Value

STREAMS, TWEET_STREAMS = 100, 20
LITERAL = "posg:tolerance=0.05,lift=false"
RENEWED = "posg:tolerance=1,lift=false,memory=stream,synchronise_records=64"
SLOW = "posg:tolerance=0.05,lift=false,memory=stream,synchronise_records=64"
LIFTED = "posg:tolerance=1,memory=stream,synchronise_records=64"
REPORTED = "posg:tolerance=1,synchronise=reports"
VARIANTS = {
    "to the letter": LITERAL,
    "synchronised every 64 records": RENEWED,
    "synchronised by reports": REPORTED,
}
_AS_USUAL = ("cost_max=64", "costs=64")
"""The defaults, which would be measured twice."""
FULL_KNOWLEDGE = "full knowledge"
ZIPFS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
INSTANCES = tuple(range(1, 11))
PRECISIONS = (1.0, 0.5, 0.09, 0.05, 0.01)
OVER = (0.95, 1.0, 1.02, 1.05, 1.09, 1.15)


def run(grouping: str, options: str = "z=1", over: float = 1.0, k: int = 5) -> Run:
    """The paper's streams; `over` is its percentage of over-provisioning."""
    trace = f"posg-costs:{'z=1' if options in _AS_USUAL else options},records=32768"
    more = f"--utilisation {1 / over:.7g} --reports completed --feedback-records 64"
    known = " --full-knowledge true" if grouping == "shuffle" else ""
    return Run(grouping, trace, k, 1, f"{more} --streams {STREAMS}{known}", 32_768)


def mean_time(grouping: str, options: str = "z=1", over: float = 1.0, k: int = 5) -> Measure:
    """The mean completion time; of `FULL_KNOWLEDGE` what it would be with exact costs."""
    if grouping == FULL_KNOWLEDGE:
        return Value(run("shuffle", options, over, k), "full_knowledge_mean_ms")
    return Value(run(grouping, options, over, k), "latency_mean_ms")


def speed_up(grouping: str, options: str = "z=1", over: float = 1.0, k: int = 5) -> Measure:
    """Round robin's mean completion time over this grouping's."""
    return Ratio(mean_time("shuffle", options, over, k), mean_time(grouping, options, over, k))


def precise(grouping: str, epsilon: float) -> str:
    """The grouping with another precision of its sketches; 0.05 is the default."""
    if epsilon == 0.05:
        return grouping
    return f"{grouping}{',' if ':' in grouping else ':'}epsilon={epsilon:g}"


def tweets(grouping: str, k: int) -> Run:
    """Streams like the paper's tweets."""
    more = f"--utilisation 1 --reports completed --feedback-records 64 --streams {TWEET_STREAMS}"
    return Run(grouping, "tweets-like:records=500000", k, 1, more)


def tweets_faster(k: int) -> Measure:
    """Round robin's mean completion time over POSG's."""
    return Ratio(
        Value(tweets("shuffle", k), "latency_mean_ms"),
        Value(tweets(REPORTED, k), "latency_mean_ms"),
    )
