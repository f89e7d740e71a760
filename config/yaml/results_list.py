"""`operators:` as a list, written out: several results of a job are one operator and their sinks.

    operators:
      - {name: by_user, key: user_id, columns: {...}, sinks: [{type: console}]}

means `operator: {type: results, results: [...]}`, and in `sinks` each sink with `result: by_user`.
"""

from collections.abc import Iterator
from dataclasses import replace

from unskew.config.problems.messages import RESULTS_LIST, show_got
from unskew.config.problems.problem import Position, Problem
from unskew.config.yaml.reader import Node

SECTION = RESULTS_LIST


def write_out_results(root: Node) -> tuple[list[Problem], dict[str, str]]:
    """Replace `operators` by what it means.

    What stands in its way; and how paths begin now, each with how they begin in the file.
    """
    assert isinstance(root.value, dict)
    node = root.value.get(SECTION)
    if node is None:
        return [], {}
    position = root.key_positions.get(SECTION, node.position)
    problems = list(_check_list(root, node, position))
    del root.value[SECTION]
    paths = {"operator.results[": f"{SECTION}[", "operator.results": SECTION}
    sinks: list[Node] = []
    for index, entry in enumerate(_list_entries(node)):
        problems += _check_entry(entry, f"{SECTION}[{index}]")
        for number, sink in enumerate(_take_sinks(entry)):
            paths[f"sinks[{len(sinks)}]"] = f"{SECTION}[{index}].sinks[{number}]"
            sinks.append(sink)
    # At the position of the problems of the whole list: of a position only the first are shown.
    results = replace(node, position=position)
    operator = {"type": Node(position, "results", "results"), "results": results}
    _put(root, "operator", Node(position, dict(operator)))
    _put(root, "sinks", Node(position, list(sinks)))
    return problems, paths


def read_result_names(root: Node) -> list[str]:
    """The names of several results in a job that was written out, be it right or wrong."""
    node: Node | None = root
    for key in ("operator", "results"):
        node = node.value.get(key) if node and isinstance(node.value, dict) else None
    fields = [entry.value for entry in _list_entries(node)] if node else []
    return [str(each["name"].value) for each in fields if isinstance(each, dict) and "name" in each]


def _list_entries(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else []


def _check_list(root: Node, node: Node, position: Position) -> Iterator[Problem]:
    """Find what is wrong with the list as a whole."""
    assert isinstance(root.value, dict)
    others = [name for name in ("operator", "sinks") if name in root.value]
    entries = _list_entries(node)
    if others:
        rule = f"operators contradicts {' and '.join(others)}: each of its entries has its own"
        yield Problem(position, SECTION, rule, "remove one of them")
    if not entries:
        got = " (got none)" if node.value == [] else show_got(node)
        rule = f"a list of results{got}"
        yield Problem(position, SECTION, rule, 'begin each entry with "- name: ..."')
    elif not any(isinstance(each.value, dict) and "sinks" in each.value for each in entries):
        yield Problem(position, SECTION, "no entry has sinks", "add sinks to each")


def _check_entry(entry: Node, path: str) -> list[Problem]:
    """Take the type out of an entry, which can only be `aggregate`; its sinks are a list."""
    if not isinstance(entry.value, dict):
        return []
    problems = []
    kind, sinks = entry.value.pop("type", None), entry.value.get("sinks")
    if kind is not None and kind.value != "aggregate":
        rule = "only aggregate has several results"
        problems.append(Problem(kind.position, f"{path}.type", rule, "write a job for it"))
    if sinks is not None and not isinstance(sinks.value, list):
        rule = f"a list{show_got(sinks)}"
        way = 'begin each entry with "- "'
        problems.append(Problem(sinks.position, f"{path}.sinks", rule, way))
    return problems


def _take_sinks(entry: Node) -> list[Node]:
    """Take the sinks out of an entry of `operators`; each then names its result."""
    if not isinstance(entry.value, dict):
        return []
    node, name = entry.value.pop("sinks", None), entry.value.get("name")
    if node is None:
        return []
    sinks = node.value if isinstance(node.value, list) else [node]
    for sink in sinks:
        if isinstance(sink.value, dict) and name is not None:
            sink.value.setdefault("result", name)
    return sinks


def _put(root: Node, section: str, node: Node) -> None:
    assert isinstance(root.value, dict)
    fields = node.value if isinstance(node.value, dict) else {}
    root.value[section] = replace(node, key_positions=dict.fromkeys(fields, node.position))
    root.key_positions[section] = node.position
