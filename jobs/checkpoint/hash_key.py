"""The secret by which a job's hot keys are hashed for displays.

Without it, whoever guesses a key could hash the guess and compare. It is made with the checkpoint
and stays with it, so that a key has one hash over restarts and in `unskew inspect`.
"""

import secrets
from hashlib import blake2b
from pathlib import Path

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import find_local_path
from unskew.grouping.spark.private_files import write_private
from unskew.jobs.checkpoint.files import read_bytes, write_bytes
from unskew.jobs.checkpoint.identity import describe_unusable

FILE = "unskew.key"
_BYTES = 32


def make_hash_key(checkpoint: str) -> bytes:
    """The checkpoint's key; made if there is none, or none that was written whole."""
    try:
        key = read_hash_key(checkpoint)
        if key is None:
            key = secrets.token_bytes(_BYTES)
            _write(_locate_key_file(checkpoint), key)
    except OSError as error:
        raise ExternalError(describe_unusable(checkpoint, error)) from error
    return key


def read_hash_key(checkpoint: str) -> bytes | None:
    """The checkpoint's key; None if it has none yet."""
    text = read_bytes(_locate_key_file(checkpoint)) or b""
    try:
        key = bytes.fromhex(text.decode())
    except ValueError:
        return None
    return key if len(key) == _BYTES else None


def hash_with_key(hashed: int, key: bytes | None) -> int:
    """Hash a key's 64-bit hash once more, by a secret; without one it stays as it is."""
    if key is None:
        return hashed
    digest = blake2b(hashed.to_bytes(8, "little"), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _write(file: str, key: bytes) -> None:
    path = find_local_path(file)
    if path is None:
        write_bytes(file, key.hex().encode())
        return
    Path(path).unlink(missing_ok=True)
    write_private(Path(path), key.hex())


def _locate_key_file(checkpoint: str) -> str:
    return f"{checkpoint.rstrip('/')}/{FILE}"
