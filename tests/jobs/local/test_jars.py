import json
import shutil
from pathlib import Path

import pytest

from unskew.jobs.__main__ import main
from unskew.jobs.local import jars
from unskew.jobs.local.resources import find_resource


def test_every_listed_artifact_has_a_checksum() -> None:
    ivy = find_resource("ivy.xml").read_text()
    listed = jars.read_expected()
    assert all(len(digest) == 64 for digest in listed.values())
    for name in ("spark-sql-kafka-0-10_2.13-4.2.0", "kafka-clients-3.9.2", "commons-pool2-2.13.1"):
        assert f"spark/{name}.jar" in listed
    assert "broker/kafka_2.13-4.3.1.jar" in listed
    assert 'rev="4.2.0"' in ivy


def test_paths_exist_and_are_the_sets_own() -> None:
    spark = jars.fetch_jars("spark")
    assert len(spark) == 5
    assert all(path.exists() and path.parent.name == "spark" for path in spark)


@pytest.fixture
def copied_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, filled with real jars."""
    filled = jars.ensure(wanted=jars.SETS)
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path))
    shutil.copytree(filled, tmp_path / "jars" / filled.name)
    return tmp_path / "jars" / filled.name


def test_a_filled_cache_needs_no_network(
    copied_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "resolve", lambda *_: pytest.fail("asked the network"))
    assert jars.ensure() == copied_cache


def test_delta_is_fetched_when_it_is_asked_for(
    copied_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(copied_cache, whole)
    shutil.rmtree(copied_cache / "delta")
    asked = []

    def deliver(target: Path, say: object, sets: tuple[str, ...]) -> None:
        asked.append(sets)
        for name in sets:
            shutil.copytree(whole / name, target / name)

    monkeypatch.setattr(jars, "resolve", deliver)
    assert len(jars.fetch_jars("spark")) == 5
    assert asked == []
    assert all(path.exists() for path in jars.fetch_jars("delta"))
    assert asked == [("delta",)]


def test_a_damaged_jar_is_fetched_again(
    copied_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = tmp_path / "good"
    shutil.copytree(copied_cache, good)
    jar = next(copied_cache.glob("spark/commons-pool2*.jar"))
    jar.write_bytes(jar.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(jars, "resolve", lambda target, *_: shutil.copytree(good, target))
    assert jars.find_problems(copied_cache) == [
        f"spark/{jar.name}: the checksum differs from the committed one"
    ]
    assert jars.find_problems(jars.ensure()) == []


def test_a_jar_that_cannot_be_read_is_a_fault(copied_cache: Path) -> None:
    jar = next(copied_cache.glob("spark/commons-pool2*.jar"))
    jar.unlink()
    jar.mkdir()
    assert jars.find_problems(copied_cache) == [f"spark/{jar.name}: cannot be read: Is a directory"]


def test_a_download_that_differs_from_the_list_is_refused(
    copied_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deliver_wrong(target: Path, *_: object) -> None:
        shutil.copytree(copied_cache, target)
        (target / "spark" / jar.name).write_bytes(b"not a jar")

    jar = next(copied_cache.glob("spark/kafka-clients*.jar"))
    jar.unlink()
    monkeypatch.setattr(jars, "resolve", deliver_wrong)
    with pytest.raises(
        jars.ExternalError, match="checksum differs from the committed one; not used"
    ):
        jars.ensure()
    assert not list(copied_cache.parent.glob("*.part"))


def test_an_unreachable_repository_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "settings.xml"
    nowhere.write_text(
        '<ivysettings><settings defaultResolver="x"/><resolvers>'
        f'<filesystem name="x"><artifact pattern="{tmp_path}/[artifact].[ext]"/></filesystem>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("UNSKEW_IVY_SETTINGS", str(nowhere))
    with pytest.raises(jars.ExternalError) as error:
        jars.ensure()
    lines = str(error.value).splitlines()
    assert lines[0].startswith("jars: Ivy could not fetch them; is a Maven repository reachable?")
    assert "jars: org.apache.kafka#kafka_2.13;4.3.1: not found" in lines


def test_what_the_network_said_is_told() -> None:
    output = [
        "Server access error at url REPOSITORY/a.pom (javax.net.SSLException: no path)",
        "\t\t:: org.apache.kafka#kafka_2.13;4.3.1: not found",
    ]
    assert list(jars._find_reasons(output)) == [
        "javax.net.SSLException: no path",
        "org.apache.kafka#kafka_2.13;4.3.1: not found",
    ]


def test_the_command_prints_paths_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jars", "spark"]) == 0
    plain = capsys.readouterr().out
    assert plain.splitlines() == [str(path) for path in jars.fetch_jars("spark")]
    assert main(["jars", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {name: len(paths) for name, paths in printed.items()} == {
        "spark": 5,
        "broker": 45,
        "delta": 2,
    }


def test_an_unknown_set_is_an_error_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jars", "flink"]) == 2
    problem = 'jars: unknown set (got "flink"); one of spark, broker, delta\n'
    assert capsys.readouterr().err == problem
