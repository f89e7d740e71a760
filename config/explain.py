"""The effective job, as YAML that can be read again: with defaults, references as written."""

from typing import Any

import yaml

from unskew.config.errors import UsageError
from unskew.config.loader import load
from unskew.config.problems import messages
from unskew.config.problems.problem import Part, Path
from unskew.config.yaml.reader import Node
from unskew.grouping.options import scalars
from unskew.grouping.options.printed import HIDDEN


def explain(path_or_name: str) -> dict[str, Any]:
    """The effective job as plain values in the models' order, without what is not set."""
    loaded = load(path_or_name)
    if loaded.job is None or loaded.root is None or loaded.problems:
        raise UsageError(*loaded.lines())
    effective: dict[str, Any] = _show(loaded.job.model_dump(mode="json"), (), loaded.root)
    return effective


def write_yaml(job: dict[str, Any]) -> str:
    """The job as YAML that our reader, and any other of YAML 1.1 or 1.2, reads alike."""
    text: str = yaml.dump(
        job, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096, indent=2
    )
    return text


def _show(value: Any, path: Path, root: Node) -> Any:
    node, _ = messages.find(root, path)
    hidden = node is not None and (node.secret or node.referenced)
    if node is not None and hidden and not isinstance(value, dict | list):
        return node.source if node.source is not None else HIDDEN
    if isinstance(value, dict):
        ordered = sorted(value, key=lambda key: key != "type")
        return {
            key: _show(value[key], (*path, key), root) for key in ordered if value[key] is not None
        }
    if isinstance(value, list):
        return [_show(child, _extend(path, index), root) for index, child in enumerate(value)]
    # What a reference brought, or a user wrote with `$${`, must not be expanded a second time.
    return value.replace("${", "$${") if isinstance(value, str) else value


def _extend(path: Path, part: Part) -> Path:
    return (*path, part)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that YAML 1.1 or 1.2 would read as something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # Entries of a list stand deeper than its key, as in the shipped jobs.
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    try:
        if not isinstance(scalars.resolve(text), str):
            style = "'"
    except scalars.ScalarError:
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
