"""`word_count`: how often each word occurs. A word is a run of letters and digits, lower case."""

from collections.abc import Mapping

from unskew.config.models.base import Expression
from unskew.config.models.operator import OperatorOptions
from unskew.jobs.operators.base import RECORDS, Operator

# Letters, digits and marks of every script, and apostrophes.
_WORD = r"[\\p{L}\\p{M}\\p{N}\\x27\\u2019]+"


def split_words(text: str) -> str:
    """Split a text into words, both as SQL expressions."""
    # Not `split`: it compiles its pattern for every row, which takes five times as long.
    return f"regexp_extract_all(lower({text}), '{_WORD}', 0)"


class WordCountOptions(OperatorOptions):
    """How often each word occurs."""

    text: Expression = "value"
    """The text whose words are counted, as an SQL expression."""


class WordCount(Operator):
    """Counts words."""

    Options = WordCountOptions
    options: WordCountOptions
    explodes = True

    @property
    def key(self) -> str:
        return split_words(self.options.text)

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {}

    @property
    def merge(self) -> Mapping[str, str]:
        return {"count": f"sum({RECORDS})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {"count": "count(1)"}
