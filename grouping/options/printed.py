"""Values as messages print them: short, on one line, as YAML would write them; secrets hidden."""

HIDDEN = "***"
PRINTED_LENGTH_MAX = 60


def show(value: object) -> str:
    """A value as a message shows it.

    >>> [show(value) for value in ("text", 1.0, None, True, [1])]
    ['"text"', '1', 'nothing', 'true', 'a list']
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else f"{value}".removesuffix(".0")
    text = escape_line(text)
    if len(text) <= PRINTED_LENGTH_MAX:
        return text
    return text[: PRINTED_LENGTH_MAX - 3] + "..."


def escape_line(text: str) -> str:
    """Control characters escaped: a message is one line and cannot drive a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
