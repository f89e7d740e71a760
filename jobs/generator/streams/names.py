"""Names of keys: as many as asked, all different, the same in every run."""

_SYLLABLES = tuple(first + second for second in "aeiou" for first in "bdfghjklmnprstvz")
_ALPHABET = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def make_words(count: int) -> list[str]:
    """Make words of two syllables or more that can be spoken."""
    return [_spell(number + len(_SYLLABLES), _SYLLABLES) for number in range(count)]


def make_symbols(count: int) -> list[str]:
    """Make stock symbols of three letters or more."""
    return [_spell(number + len(_ALPHABET) ** 2, _ALPHABET) for number in range(count)]


def _spell(number: int, digits: tuple[str, ...]) -> str:
    """Spell `number` in the base that has these digits."""
    name = ""
    while number:
        number, digit = divmod(number, len(digits))
        name = digits[digit] + name
    return name
