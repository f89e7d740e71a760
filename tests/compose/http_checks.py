"""What services of docker-compose.yml answer over HTTP."""

import base64
import json
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any

import yaml

from tests.compose.compose_file import ROOT
from unskew.config.errors import ExternalError


def get(url: str, user: str) -> Any:
    """A page's JSON, logged in."""
    request = urllib.request.Request(url)  # noqa: S310 - on this machine
    request.add_header("Authorization", f"Basic {base64.b64encode(user.encode()).decode()}")
    return _json(request)


def answers(url: str) -> bool:
    """Whether there is a page."""
    try:
        with urllib.request.urlopen(url, timeout=4) as answer:  # noqa: S310 - on this machine
            return bool(answer.status == 200)
    except OSError:
        return False


def sample(prometheus: str, query: str) -> float | None:
    """The value of a query of one result, None if it has none."""
    result = query_api(prometheus, f"query?{urllib.parse.urlencode({'query': query})}")["result"]
    return float(result[0]["value"][1]) if result else None


def query_api(prometheus: str, path: str) -> Any:
    """What Prometheus answers."""
    return _json(urllib.request.Request(f"{prometheus}/api/v1/{path}"))["data"]  # noqa: S310


def _json(request: urllib.request.Request) -> Any:
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return json.loads(answer.read())
    except OSError as error:
        raise ExternalError(f"{request.full_url}: {error}") from None


def loaded_rules(prometheus: str) -> int:
    """How many rules it has: ExternalError unless all that we ship, and it can evaluate them."""
    files = (ROOT / "deploy" / "prometheus" / "rules").glob("*.yml")
    shipped = rule_names(
        group for file in files for group in yaml.safe_load(file.read_text())["groups"]
    )
    groups = query_api(prometheus, "rules")["groups"]
    missing = shipped - rule_names(groups)
    if missing:
        raise ExternalError(f"prometheus: has no rule {', '.join(sorted(missing))}")
    wrong = [rule for group in groups for rule in group["rules"] if rule["health"] == "err"]
    if wrong:
        raise ExternalError(*(f"prometheus: {rule['name']}: {rule['lastError']}" for rule in wrong))
    return len(shipped)


def rule_names(groups: Iterable[Any]) -> set[str]:
    """The names of groups' rules, in a file or an answer."""
    rules = [rule for group in groups for rule in group["rules"]]
    return {rule.get("name") or rule.get("alert") or rule["record"] for rule in rules}
