"""The colours of all that is drawn: the live page, reports, the demo's and the docs' pictures.

Green is what runs, orange what `key` would give; the parts of a batch have a colour each, of which
the work's is the strongest. What is drawn on a card is at least 3 to 1 against it.
"""

from unskew.jobs.observe.batches.batch_time import COMMIT, MERGE, READ, REST, ROUTE, WAITING, WORK

LIGHT = {
    "ground": "#f3f5f7",
    "card": "#ffffff",
    "text": "#14202b",
    "muted": "#566472",
    "line": "#dde3e8",
    "routed": "#0e8478",
    "key": "#c4510d",
    "key-2": "#f0a873",
    "good": "#0b7a4b",
    "alarm": "#b3261e",
    "mark": "#14202b",
    WAITING: "#8693a0",
    READ: "#4f86c6",
    ROUTE: "#8d5fc2",
    WORK: "#0e8478",
    MERGE: "#b07d12",
    COMMIT: "#4f5b66",
    REST: "#6d92b8",
}
DARK = {
    "ground": "#0d1317",
    "card": "#161f26",
    "text": "#e8eef2",
    "muted": "#9aabb8",
    "line": "#2a3640",
    "routed": "#2fc3b0",
    "key": "#ff9b54",
    "key-2": "#8a4c1e",
    "good": "#4fd08f",
    "alarm": "#ff8a80",
    "mark": "#ffffff",
    WAITING: "#6b7885",
    READ: "#6fa5e8",
    ROUTE: "#b48ae6",
    WORK: "#2fc3b0",
    MERGE: "#e2b750",
    COMMIT: "#a9b6c2",
    REST: "#5d7e9f",
}


def write_css() -> str:
    """The colours as CSS variables, by what the reader's system prefers."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in colours.items())
        for colours in (LIGHT, DARK)
    )
    return (
        f":root{{{light}color-scheme:light}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}color-scheme:dark}}}}\n"
    )
