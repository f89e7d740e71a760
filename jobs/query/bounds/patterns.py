"""Regular expressions on texts that overflow the stack of Java.

Java's matcher calls itself for each repeat of a group: `(a|b)*` on a text of some thousand letters
overflows the stack. Spark ends the process for that, and the next start meets the same record.
So the pattern is tried by reflection first, which makes an exception of everything; where it fails,
the expression raises.
"""

import re

from pyspark.sql import Column
from pyspark.sql import functions as sf

MATCHERS = (
    "RLike",
    "RegExpCount",
    "RegExpExtract",
    "RegExpExtractAll",
    "RegExpInStr",
    "RegExpReplace",
    "RegExpSubStr",
    "StringSplit",
)
"""Spark's classes whose first argument is a text and whose second is a pattern."""
# Shorter texts fit on any stack.
_BYTES_MIN = 256
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{\d*,\}|\{(?:\d*,)?\d{3,}\})")
_HELPER = ("org.apache.commons.lang3.RegExUtils", "removeAll")


def may_overflow(pattern: str) -> bool:
    """Does a pattern repeat a group often?"""
    return _REPEATED_GROUP.search(pattern) is not None


def without_overflow(text: Column, pattern: Column) -> Column:
    """The text; raises where the pattern overflows the stack on it."""
    tried = sf.try_reflect(*[sf.lit(name) for name in _HELPER], text, pattern)
    overflows = (sf.octet_length(text) > _BYTES_MIN) & tried.isNull()
    raised = sf.raise_error(sf.lit("a text that is too long for a pattern with a repeated group"))
    return sf.when(overflows, raised).otherwise(text)
