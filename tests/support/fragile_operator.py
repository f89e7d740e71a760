"""Operators of a user's own that raise on some rows, as the text of their module."""

FRAGILE = '''
from unskew import OperatorOptions, RowOperator


class FragileOptions(OperatorOptions):
    """Counts texts, but for one."""


class Fragile(RowOperator):
    Options = FragileOptions
    key = "user"
    inputs = {"text": "text"}
    partial_columns = {"texts": "INT"}
    merge = {"texts": "sum(texts)"}

    def start(self):
        return 0

    def add(self, state, row):
        if row.text == "boom":
            raise ValueError("cannot\\n read this")
        return state + 1

    def result(self, state):
        return {"texts": state}


class FragileWords(Fragile):
    key = "split(text, ' ')"
    explodes = True
    inputs = {}

    def add(self, state, row):
        if row.key in ("boom", "bang"):
            raise ValueError(row.key)
        return state + 1
'''
