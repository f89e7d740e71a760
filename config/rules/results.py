"""Windows, lateness, output mode and metrics."""

from collections.abc import Iterator
from typing import Any

from unskew.config.models.metrics import Metrics
from unskew.config.models.window import Merge
from unskew.config.rules.registry import Contradiction, rule
from unskew.config.types.units import Duration

WINDOWS_OF_A_RECORD_MAX = 1_000


@rule("window")
def slide_within_duration(window: Any) -> Iterator[Contradiction]:
    """A gap between windows would lose records; too many windows would copy each too often."""
    if window.type != "sliding":
        return
    if window.slide > window.duration:
        yield Contradiction(
            ("window", "slide"),
            f"{window.slide} is longer than window.duration {window.duration}:"
            " records would be lost",
            "make slide shorter, or duration longer",
        )
    elif window.duration.amount / window.slide.amount > WINDOWS_OF_A_RECORD_MAX:
        yield Contradiction(
            ("window", "slide"),
            f"{window.slide} with window.duration {window.duration} puts a record into more than"
            f" {WINDOWS_OF_A_RECORD_MAX} windows",
            "make slide longer, or duration shorter",
        )


@rule("merge", "window")
def append_needs_a_window(merge: Merge, window: Any) -> Iterator[Contradiction]:
    """Append needs a window: running totals are never complete."""
    if merge.output == "append" and window.type == "none":
        yield Contradiction(
            ("merge", "output"),
            "append contradicts window.type none: a running total is never complete",
            "write output: update, or a window",
        )


@rule("merge", "window", "lateness")
def append_needs_lateness(
    merge: Merge, window: Any, lateness: Duration | None
) -> Iterator[Contradiction]:
    """Append writes a window once it is complete; `lateness` defines when."""
    if merge.output == "append" and window.type != "none" and lateness is None:
        yield Contradiction(
            ("merge", "output"),
            "append needs lateness: it says when a window is complete",
            'add lateness, e.g. "lateness: 30 s"',
        )


@rule("window", "lateness")
def lateness_needs_a_window(window: Any, lateness: Duration | None) -> Iterator[Contradiction]:
    """`lateness` needs a window: nothing is late for a running total."""
    if lateness is not None and window.type == "none":
        yield Contradiction(
            ("lateness",),
            "lateness contradicts window.type none: nothing is late for a running total",
            "remove lateness, or add a window",
        )


@rule("metrics")
def passwords_travel_encrypted(metrics: Metrics) -> Iterator[Contradiction]:
    """Basic authentication sends the password in clear; require TLS or loopback."""
    if metrics.basic_auth is not None and metrics.tls is None and not metrics.loopback:
        yield Contradiction(
            ("metrics", "basic_auth"),
            f"basic_auth without metrics.tls on metrics.host {metrics.host} sends the password in"
            " clear",
            "add metrics.tls, or listen on 127.0.0.1",
        )


@rule("metrics")
def names_need_hot_keys(metrics: Metrics) -> Iterator[Contradiction]:
    """`hot_key_names` needs `hot_keys` above 0."""
    if metrics.hot_key_names and metrics.hot_keys == 0:
        yield Contradiction(
            ("metrics", "hot_key_names"),
            "true contradicts metrics.hot_keys 0: no hot keys are shown",
            "write hot_keys: 10, or remove hot_key_names",
        )
