"""Which keys hold secrets, and a text that never shows itself.

A secret is written in a job file only as a reference, `${env:NAME}` or `${file:/path}`: the file
can then be committed, printed and mailed. The rule goes by the key's name, so it also holds where a
mapping passes its keys through (`kafka.ssl.key.password`, `spark.hadoop.fs.s3a.secret.key`).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import GetCoreSchemaHandler, SecretStr
from pydantic_core import CoreSchema, core_schema

from unskew.grouping.options.printed import HIDDEN

SHORTEST_REDACTED = 4

_SECRET_KEY = re.compile(
    r"(^|[._-])(pass|pwd|auth)$|passw(or)?d|passphrase|passcode|secret|token(?!s|iz)|credential"
    r"|(^|[._-])sas[._-]"
    r"|(access|private|api|account|signing|encryption)[._-]?key"
    r"|jaas|ssl[._]keystore[._]key$|basic[._]auth[._]user[._]info$",
    re.IGNORECASE,
)
# Their names hold such a word, but they say where something is or how it works.
_ABOUT_A_SECRET = re.compile(
    r"[._](url|uri|location|path|file|files|folder|dir|mechanism|type|class|name|provider|ms"
    r"|seconds|interval|enabled|format|algorithm|ratio|factor|limit|max|min|size|window|jitter)$"
    r"|(bits|bitlength|tokenfile)$|kubernetes\.(driver|executor)\.(secrets|secretkeyref)\.",
    re.IGNORECASE,
)
_PASSWORD_IN_ADDRESS = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_JAVA_OPTIONS = re.compile(r"java[._]?(options|opts)$", re.IGNORECASE)
_PROPERTY = re.compile(r"(?<!\S)[\"']?-D([^\s=]+)=(\S+)")


class Secret(SecretStr):
    """A text that prints as `***`; `get_secret_value()` gives it."""

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return f"Secret('{HIDDEN}')"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        schema: Any = super().__get_pydantic_core_schema__(source, handler)
        shown = core_schema.plain_serializer_function_ser_schema(str, when_used="json")
        schema["serialization"] = shown
        return cast("CoreSchema", schema)


def holds_secret(name: str) -> bool:
    """Does a key (or an environment variable) of this name hold a secret?"""
    return bool(_SECRET_KEY.search(name)) and not _ABOUT_A_SECRET.search(name)


def find_java_option_secrets(text: str) -> dict[str, str]:
    """The system properties (`-Dname=value`) of a JVM's options that hold secrets."""
    return {
        name: value.strip("\"'") for name, value in _PROPERTY.findall(text) if holds_secret(name)
    }


def find_address_passwords(text: str) -> list[str]:
    """The passwords in addresses such as `https://user:password@host`."""
    return _PASSWORD_IN_ADDRESS.findall(text)


def holds_java_options(name: str) -> bool:
    """Is an option of this name the command line of a JVM?"""
    return bool(_JAVA_OPTIONS.search(name))


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` with each secret in it hidden; very short ones are left, they are in every word."""
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= SHORTEST_REDACTED:
            text = text.replace(secret, HIDDEN)
    return text


def reveal(options: Mapping[str, str | Secret]) -> dict[str, str]:
    """The options as Spark and Kafka take them, secrets in clear."""
    return {
        key: value.get_secret_value() if isinstance(value, Secret) else value
        for key, value in options.items()
    }
