"""One damaged file: a bit flipped, or cut short."""

import random
from pathlib import Path


def kind_of(path: Path) -> str:
    """Files of a checkpoint by their purpose."""
    folder = path.parts[0] if len(path.parts) > 1 else path.name
    hidden = "checksum of " if path.name.endswith(".crc") else ""
    suffix = path.name.removesuffix(".crc").rpartition(".")[2]
    return f"{hidden}{folder} {'' if suffix.isdecimal() else suffix}".strip()


def flip(path: Path, rng: random.Random) -> str:
    """Flip a bit, or cut the file short; what was done."""
    data = bytearray(path.read_bytes())
    position = rng.randrange(len(data))
    if rng.random() < 0.3:
        path.write_bytes(data[:position])
        return f"cut at {position} of {len(data)}"
    bit = rng.randrange(8)
    data[position] ^= 1 << bit
    path.write_bytes(data)
    return f"bit {bit} of byte {position} of {len(data)} flipped"
