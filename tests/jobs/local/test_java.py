import os
import subprocess
from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.jobs.__main__ import main
from unskew.jobs.local import java


def fake_java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    command = folder / "bin" / "java"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    return command


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.usefixtures("no_java")
def test_java_home_is_taken_before_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = fake_java(tmp_path / "named", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.9")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert java.find_system_java() == named


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("version", ["1.8.0_372", "11.0.2", "16"])
def test_an_old_java_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    old = fake_java(tmp_path / "old", version)
    new = fake_java(tmp_path / "new", "17")
    monkeypatch.setenv("JAVA_HOME", str(old.parent.parent))
    monkeypatch.setenv("PATH", str(new.parent))
    assert java.find_system_java() == new


@pytest.mark.usefixtures("no_java")
def test_a_version_managers_launcher_is_asked_where_java_lives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = fake_java(tmp_path / "real", "21")
    shim = tmp_path / "shims" / "java"
    shim.parent.mkdir()
    shim.write_text(
        f"#!/bin/sh\necho '    java.version = 21.0.2' >&2\n"
        f"echo '    java.home = {real.parent.parent}' >&2\n"
    )
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    assert java.find_java_home() == real.parent.parent


@pytest.mark.usefixtures("no_java")
def test_without_any_java_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.util, "find_spec", lambda name: None)
    with pytest.raises(ExternalError) as error:
        java.find_java_home()
    assert str(error.value) == (
        "java: none of version 17 or later in JAVA_HOME or on the PATH;"
        " install one, or: pip install 'unskew[jre]'"
    )


def test_the_shim_drops_the_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    echo = tmp_path / "java"
    echo.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    shim = tmp_path / "shim"
    shim.write_text(java._SHIM.format(java=echo))
    for path in (echo, shim):
        path.chmod(0o755)
    words = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dx=$HOME", "Main", ""]
    printed = subprocess.run([shim, *words], capture_output=True, text=True, check=True).stdout
    assert printed == "<-cp><a b:*><-Dx=$HOME><Main><>"
    assert os.access(shim, os.X_OK)


@pytest.mark.usefixtures("no_java")
def test_the_command_prints_the_home_for_programs_of_ones_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_java(tmp_path / "named", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    assert main(["java"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'named'}\n"
