"""XXH64 with Spark's seed, by its public specification: what `xxhash64` gives for one text."""

_BITS = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_SEED = 42


def xxhash64(data: bytes) -> int:
    """The signed 64-bit hash of these bytes."""
    position = 0
    if len(data) >= 32:
        lanes = [_SEED + _P1 + _P2, _SEED + _P2, _SEED, _SEED - _P1]
        while position <= len(data) - 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane] & _BITS, _word(data, position + 8 * lane, 8))
            position += 32
        value = sum(_rotated(lanes[i], n) for i, n in enumerate((1, 7, 12, 18))) & _BITS
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _P1 + _P4) & _BITS
    else:
        value = (_SEED + _P5) & _BITS
    value = _tail((value + len(data)) & _BITS, data, position)
    value = ((value ^ (value >> 33)) * _P2) & _BITS
    value = ((value ^ (value >> 29)) * _P3) & _BITS
    value ^= value >> 32
    return value - (1 << 64) if value >> 63 else value


def _tail(value: int, data: bytes, position: int) -> int:
    while position + 8 <= len(data):
        value ^= _round(0, _word(data, position, 8))
        value = (_rotated(value, 27) * _P1 + _P4) & _BITS
        position += 8
    if position + 4 <= len(data):
        value ^= (_word(data, position, 4) * _P1) & _BITS
        value = (_rotated(value, 23) * _P2 + _P3) & _BITS
        position += 4
    for byte in data[position:]:
        value = (_rotated(value ^ (byte * _P5 & _BITS), 11) * _P1) & _BITS
    return value


def _word(data: bytes, position: int, size: int) -> int:
    return int.from_bytes(data[position : position + size], "little")


def _round(lane: int, word: int) -> int:
    return (_rotated((lane + word * _P2) & _BITS, 31) * _P1) & _BITS


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _BITS
