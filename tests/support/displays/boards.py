"""A board of metrics, and what a scraper reads of it."""

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health


def board(hot_keys: int = 10) -> Board:
    return Board("q", Health(10.0, lambda: 0.0), ("level", "word_count"), hot_keys, 10.0)


def samples(of: Board) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample by name and labels, as a scraper reads them; the label `query` left out."""
    values = {}
    for family in text_string_to_metric_families(generate_latest(of.make_registry()).decode()):
        for sample in family.samples:
            labels = {**sample.labels}
            assert labels.pop("query") == "q"
            values[sample.name, tuple(sorted(labels.items()))] = sample.value
    return values
