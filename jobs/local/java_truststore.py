"""The certificate authorities that this machine trusts, as a file that Java reads.

A JRE from pip knows only the public authorities that it brings. Where the way to the registries
goes through a proxy with an authority of its own, Python (and with it pip) reaches them and such a
JRE does not. So a JVM that downloads is given what Python trusts: the machine's store, or the file
that `SSL_CERT_FILE` names. The format is Java's old "JKS", which needs no tool to be written:
magic, version, count, then an alias, a time and the certificate of each, then a digest.
"""

import contextlib
import hashlib
import ssl
import struct
from pathlib import Path

_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_PASSWORD = "changeit"  # noqa: S105 - Java's default; the file holds nothing secret


def read_authorities() -> list[bytes]:
    """Read the certificates (DER) of every authority that Python trusts."""
    context = ssl.create_default_context()
    # Folders are searched by OpenSSL when it verifies, so the context does not list them yet.
    folder = ssl.get_default_verify_paths().capath
    for path in sorted(Path(folder).glob("*.[0-9]")) if folder else []:
        with contextlib.suppress(ssl.SSLError, OSError):
            context.load_verify_locations(path)
    return context.get_ca_certs(binary_form=True)


def write_store(path: Path, certificates: list[bytes]) -> None:
    """Write certificates as a trust store of Java."""
    parts = [struct.pack(">III", _MAGIC, _VERSION, len(certificates))]
    for number, certificate in enumerate(certificates):
        alias, kind = _encode_text(f"authority-{number}"), _encode_text("X.509")
        parts.append(struct.pack(">I", _TRUSTED) + alias + struct.pack(">Q", 0) + kind)
        parts.append(struct.pack(">I", len(certificate)) + certificate)
    body = b"".join(parts)
    salted = _PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    path.write_bytes(body + hashlib.sha1(salted, usedforsecurity=False).digest())


def write_truststore(path: Path) -> list[str]:
    """Write the trust store; return the JVM options, empty without CAs."""
    certificates = read_authorities()
    if not certificates:
        return []
    write_store(path, certificates)
    return [f"-Djavax.net.ssl.trustStore={path}", "-Djavax.net.ssl.trustStoreType=JKS"]


def _encode_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
