import ssl
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from unskew.jobs.local import jars
from unskew.jobs.local import java_truststore as trust

# Made for this test: it has signed nothing, and nobody has its key.
AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBmDCCAT+gAwIBAgIUJGEVjQaL8e0K5UyzNLJJszP5lRowCgYIKoZIzj0EAwIw
ITEfMB0GA1UEAwwWYW4gYXV0aG9yaXR5IG9mIGEgdGVzdDAgFw0yNjExMTgxNDUw
MTZaGA8yMTI2MTAyNTE0NTAxNlowITEfMB0GA1UEAwwWYW4gYXV0aG9yaXR5IG9m
IGEgdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGVAdCxP9k/QjfAXjQcv
66ysJys/FMDfd2FKk+mh0sjVne93kbFYy4TmRbov6YIg4lufX0VR9zkYBk2p1olP
6nijUzBRMB0GA1UdDgQWBBQChHwLYXMncnFGmIot/EEKl1hJ/TAfBgNVHSMEGDAW
gBQChHwLYXMncnFGmIot/EEKl1hJ/TAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49
BAMCA0cAMEQCIHbOZvNTdyHBB4jR6l0gXTWNvICcJHDf4ARMr6p6t6fNAiBQ1mZH
G3ekzB4fxgxfgZXJfpCNzHvU5tKjkZrrflWrJA==
-----END CERTIFICATE-----
"""
CERTIFICATE = ssl.PEM_cert_to_DER_cert(AUTHORITY)


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The file and the folder of authorities that Python looks at; both empty."""
    file, folder = tmp_path / "authorities.pem", tmp_path / "authorities"
    file.touch()
    folder.mkdir()
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    return file, folder


def test_authorities_come_from_the_file_that_the_environment_names(
    paths: tuple[Path, Path],
) -> None:
    paths[0].write_text(AUTHORITY)
    assert trust.read_authorities() == [CERTIFICATE]


def test_authorities_come_from_a_folder_too_and_once(paths: tuple[Path, Path]) -> None:
    paths[0].write_text(AUTHORITY)
    (paths[1] / "0a1b2c3d.0").write_text(AUTHORITY)
    (paths[1] / "0a1b2c3d.1").write_text("not a certificate")
    assert trust.read_authorities() == [CERTIFICATE]


def test_where_python_names_none_java_keeps_its_own(
    paths: tuple[Path, Path], tmp_path: Path
) -> None:
    assert trust.write_truststore(tmp_path / "store") == []
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(("own_java", "given"), [(True, False), (False, True)])
def test_only_a_jre_that_is_not_the_machines_own_is_given_them(
    paths: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own_java: bool,
    given: bool,
) -> None:
    paths[0].write_text(AUTHORITY)
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho ":: $*: said"\nexit 1\n')
    java.chmod(0o755)
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "find_java", lambda: java)
    monkeypatch.setattr(jars, "find_system_java", lambda: java if own_java else None)
    said: list[str] = []
    monkeypatch.setattr(jars, "_follow", lambda output, lines, *_: said.extend(output))
    with pytest.raises(jars.ExternalError):
        jars.resolve(tmp_path / "target", print)
    assert ("-Djavax.net.ssl.trustStore=" in said[0]) is given


@pytest.mark.spark
def test_java_reads_what_is_written(spark: SparkSession, tmp_path: Path) -> None:
    trust.write_store(tmp_path / "store", [CERTIFICATE])
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.jvm
    store = jvm.java.security.KeyStore.getInstance("JKS")
    password = gateway.new_array(jvm.char, 8)  # with it, Java checks the digest
    for path, character in enumerate("changeit"):
        password[path] = character
    store.load(jvm.java.io.FileInputStream(str(tmp_path / "store")), password)
    assert store.size() == 1
    assert bytes(store.getCertificate("authority-0").getEncoded()) == CERTIFICATE
