"""Short forms of three sections, written out before the job is checked.

| written | means |
|---|---|
| `grouping: level` | `grouping: {type: level}` |
| `window: 1 minute` | `window: {type: tumbling, duration: 1 minute}` |
| `trigger: 10 s` | `trigger: {type: interval, interval: 10 s}` |

A text that names a type is that type: `window: none`, `trigger: available_now`.
"""

from dataclasses import replace

from unskew.config.yaml.reader import Node

_QUANTITIES = {"window": ("tumbling", "duration"), "trigger": ("interval", "interval")}
"""What a text that begins with a digit is, and the field that has it, by section."""
SHORTENED = ("grouping", *_QUANTITIES)


def write_out(root: Node) -> None:
    """Replace the sections that are a text by what the text means."""
    assert isinstance(root.value, dict)
    for section in SHORTENED:
        node = root.value.get(section)
        if node is not None and isinstance(node.value, str) and node.value:
            root.value[section] = _written_out(section, node)


def _written_out(section: str, node: Node) -> Node:
    chosen, field = _QUANTITIES.get(section, ("", ""))
    if not chosen or not node.text[:1].isdigit():
        fields = {"type": node}
    else:
        fields = {"type": Node(node.position, chosen, chosen), field: node}
    return replace(
        node,
        value=fields,
        text="",
        source=None,
        key_positions=dict.fromkeys(fields, node.position),
    )
