"""Scores of payments, each by the model of its customer.

The same twice: `Scoring` gets row by row, `ScoringOfTables` gets Arrow tables, which is faster.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from unskew import Operator, OperatorOptions, RowOperator


class ScoringOptions(OperatorOptions):
    """What stands under `options:` in the job."""

    models: str
    """The folder with a model for each customer, as every executor sees it."""


class Model:
    """A model as it is loaded: think of one that takes a second and 50 MB."""

    def __init__(self, file: Path) -> None:
        self._weights = json.loads(file.read_text("utf-8"))

    def risk(self, euros, online):
        """The risk of payments: whole numbers, since partial results must add up exactly."""
        weights = self._weights
        risk = weights["bias"] + weights["euro"] * euros + weights["online"] * online
        return np.maximum(risk, 0)

    def close(self) -> None:
        """Called when the worker makes room for another customer's model."""
        self._weights = None


def load_model(folder: str, customer: str) -> Model:
    file = Path(folder, f"{customer}.json")
    return Model(file if file.is_file() else Path(folder, "others.json"))


class Scoring(RowOperator):
    Options = ScoringOptions
    key = "customer"
    inputs = {"euros": "cast(amount as bigint)", "online": "cast(online as bigint)"}
    partial_columns = {"risk": "BIGINT", "highest": "BIGINT"}
    merge = {"risk": "sum(risk)", "highest": "max(highest)"}
    reject_rules = {"incomplete": "amount is null or online is null"}

    def open(self, key):
        return load_model(self.options.models, key)

    def start(self):
        return [0, 0]

    def add(self, state, row):
        risk = row.opened.risk(row.euros, row.online)
        return [state[0] + risk, max(state[1], risk)]

    def result(self, state):
        return {"risk": state[0], "highest": state[1]}


class ScoringOfTables(Operator):
    Options = ScoringOptions
    native = False  # plain Spark cannot do it, also not under `grouping: none`
    direct = {}
    key = Scoring.key
    inputs = Scoring.inputs
    partial_columns = Scoring.partial_columns
    merge = Scoring.merge
    reject_rules = Scoring.reject_rules
    aggregations = (("risk", "sum", "risk"), ("risk", "max", "highest"))

    def open(self, key):
        return load_model(self.options.models, key)

    def partial(self, rows):
        customers = rows["key"].combine_chunks().dictionary_encode()
        numbers = customers.indices.to_numpy()
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(customers.dictionary) + 1))
        euros, online = rows["euros"].to_numpy(), rows["online"].to_numpy()
        risk = np.zeros(rows.num_rows, np.int64)
        for number, customer in enumerate(customers.dictionary.to_pylist()):
            chosen = order[ends[number] : ends[number + 1]]
            risk[chosen] = self.opened(customer).risk(euros[chosen], online[chosen])
        # Arrow makes `aggregations` of each key and stretch of time.
        return super().partial(rows.append_column("risk", pa.array(risk)))
