"""Names of keys: as many as asked, all different, the same in every run."""

_SYLLABLES = tuple(first + second for second in "aeiou" for first in "bdfghjklmnprstvz")
_ALPHABET = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def words(count: int) -> list[str]:
    """Words of two syllables or more that can be spoken."""
    return [_spelled(number + len(_SYLLABLES), _SYLLABLES) for number in range(count)]


def symbols(count: int) -> list[str]:
    """Stock symbols of three letters or more."""
    return [_spelled(number + len(_ALPHABET) ** 2, _ALPHABET) for number in range(count)]


def _spelled(number: int, digits: tuple[str, ...]) -> str:
    """`number` in the base that has these digits."""
    name = ""
    while number:
        number, digit = divmod(number, len(digits))
        name = digits[digit] + name
    return name
