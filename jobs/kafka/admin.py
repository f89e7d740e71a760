"""What is asked of a Kafka cluster before there is work for it: does it answer, what is there?"""

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka.admin import AdminClient

from unskew.grouping.options.suggestions import nearest

# What goes wrong is told once, by us.
QUIET: Mapping[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}
_TOPICS_SHOWN = 8


def admin(servers: str) -> AdminClient:
    """A client that says nothing by itself."""
    return AdminClient({"bootstrap.servers": servers, **QUIET})


def no_answer(where: str, seconds: float, reason: str = "", check: str = "the address") -> str:
    """What is said of brokers that are not there."""
    return f"{where}: no broker answers within {seconds:.0f} s{reason}; start it, or check {check}"


def no_such_topic(where: str, topic: str, there: Iterable[str]) -> str:
    """What is said of a topic that is not there, given those that are."""
    known = sorted(name for name in there if not name.startswith("__"))
    near = nearest(topic, known)
    advice = f'did you mean "{near}"?' if near else f"make it; there are {_listed(known)}"
    return f"{where}: no such topic; {advice}"


def _listed(names: list[str]) -> str:
    if not names:
        return "none"
    more = len(names) - _TOPICS_SHOWN
    return ", ".join(names[:_TOPICS_SHOWN]) + (f" and {more} more" if more > 0 else "")
