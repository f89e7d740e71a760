"""Did you mean ...: the nearest of the words that would have been right."""

import difflib
from collections.abc import Iterable

LISTED_MAX = 40


def find_nearest(word: str, words: Iterable[str], cutoff: float = 0.65) -> str | None:
    """The known word that `word` is most likely a misspelling of."""
    by_lower = {known.lower().replace("-", "_"): known for known in words}
    wanted = word[:80].lower().replace("-", "_").replace(" ", "_")
    close = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def suggest_nearest(word: str, words: Iterable[str]) -> str:
    """A suggestion: the nearest word, or else all of them."""
    known = list(words)
    near = find_nearest(word, known)
    if near is not None:
        return f'did you mean "{near}"?'
    return one_of(known) if known else "remove it: nothing can be set here"


def add_suggestion(rule: str, suggestion: str) -> str:
    """`rule; suggestion`, or the rule alone where nothing is suggested."""
    return f"{rule}; {suggestion}" if suggestion else rule


def one_of(words: Iterable[str]) -> str:
    """`one of a, b, c`."""
    known = list(words)
    more = f" and {len(known) - LISTED_MAX} more" if len(known) > LISTED_MAX else ""
    return f"one of {', '.join(known[:LISTED_MAX])}{more}"
