"""A small reader of PromQL: which metrics and labels an expression uses, and which it leaves.

It knows as much of the language as the dashboards use, and refuses the rest.
"""

import re
from collections.abc import Iterator, Mapping

Labels = frozenset[str]
Kind = Labels | None
"""What an expression makes: the labels of a vector, or None for a single number."""
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*") | (?P<range>\[[^\]]+\]) | (?P<number>\d+(?:\.\d+)?)
    | (?P<name>[A-Za-z_:][\w:]*) | (?P<mark>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){},])""",
    re.VERBOSE,
)
_AGGREGATES = {"sum", "max", "min", "avg", "count"}
_SELECTING = {"topk", "bottomk"}
_SAME = {"rate", "increase", "last_over_time", "sort", "sort_desc", "abs"}
_MADE: dict[str, Kind] = {"scalar": None, "time": None, "vector": frozenset()}
_OPERATORS = {"+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"}
_MATCHERS = {"=", "!=", "=~", "!~"}


def labels_left(expression: str, metrics: Mapping[str, Labels]) -> Labels:
    """The labels of an expression's result; ValueError if it uses what there is not."""
    reader = _Reader(expression, metrics)
    kind = reader.expression()
    if reader.kind:
        raise ValueError(f"unexpected {reader.text!r} in {expression}")
    return kind or frozenset()


class _Reader:
    """Recursive descent, one token ahead."""

    def __init__(self, expression: str, metrics: Mapping[str, Labels]) -> None:
        self._all = expression
        self._metrics = metrics
        self._tokens = self._read(expression)
        self.kind, self.text = next(self._tokens)

    def _read(self, expression: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(expression):
            if expression[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(expression, at)
            if match is None:
                raise ValueError(f"cannot read {expression[at:]!r}")
            yield str(match.lastgroup), match.group()
            at = match.end()
        yield "", ""

    def _take(self, *texts: str) -> str:
        """The token, which must be one of `texts` if there are any; then look at the next."""
        if texts and self.text not in texts:
            raise ValueError(f"{self.text!r} where {texts} should be, in {self._all}")
        taken = self.text
        self.kind, self.text = next(self._tokens, ("", ""))
        return taken

    def expression(self) -> Kind:
        """Operands with operators between them."""
        kind = self._operand()
        while self.text in _OPERATORS:
            self._take()
            if self.text in {"on", "ignoring", "bool"}:
                raise ValueError(f"{self.text} is not known to these tests: {self._all}")
            right = self._operand()
            if None not in {kind, right} and kind != right:
                raise ValueError(f"{kind} never match {right} in {self._all}")
            kind = right if kind is None else kind
        return kind

    def _operand(self) -> Kind:
        if self.text == "(":
            return self._arguments()[0]
        if self.kind == "number":
            self._take()
            return None
        if self.kind != "name":
            raise ValueError(f"unexpected {self.text!r} in {self._all}")
        name = self._take()
        if name in _AGGREGATES:
            return self._aggregate()
        if name == "label_replace":
            return self._label_replace()
        return self._call(name) if self.text == "(" else self._selector(name)

    def _arguments(self) -> list[Kind]:
        self._take("(")
        arguments: list[Kind] = []
        while self.text != ")":
            arguments.append(self.expression())
            if self.text != ")":
                self._take(",")
        self._take(")")
        return arguments

    def _aggregate(self) -> Kind:
        by: Labels = frozenset()
        if self.text == "by":
            self._take()
            by = self._names()
        (inner,) = self._arguments()
        self._known(by, inner)
        return by

    def _call(self, name: str) -> Kind:
        if name not in _SAME | _SELECTING | _MADE.keys() | {"histogram_quantile"}:
            raise ValueError(f"unknown function {name} in {self._all}")
        arguments = self._arguments()
        if name in _MADE:
            return _MADE[name]
        kind = arguments[-1]
        if name == "histogram_quantile":
            self._known(frozenset({"le"}), kind)
            return (kind or frozenset()) - {"le"}
        return kind

    def _label_replace(self) -> Kind:
        self._take("(")
        kind = self.expression() or frozenset()
        strings = []
        for _ in range(4):
            self._take(",")
            strings.append(self._take()[1:-1])
        self._take(")")
        self._known(frozenset({strings[2]}), kind)
        return kind | {strings[0]}

    def _selector(self, name: str) -> Labels:
        if name not in self._metrics:
            raise ValueError(f"there is no metric {name}")
        labels = self._metrics[name]
        if self.text == "{":
            self._take()
            while self.text != "}":
                self._known(frozenset({self._take()}), labels)
                self._take(*_MATCHERS)
                self._take()
                if self.text == ",":
                    self._take()
            self._take("}")
        if self.kind == "range":
            self._take()
        return labels

    def _names(self) -> Labels:
        self._take("(")
        names = set()
        while self.text != ")":
            names.add(self._take())
            if self.text == ",":
                self._take()
        self._take(")")
        return frozenset(names)

    def _known(self, names: Labels, labels: Kind) -> None:
        missing = names - (labels or frozenset())
        if missing:
            raise ValueError(f"no label {set(missing)} in {self._all}")
