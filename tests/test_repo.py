"""Rules of this repository that no linter knows."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from unskew.config.lint import lint

ROOTS = ("jobs", "config", "grouping")
BESIDE = ("benchmarks", "dashboards", "deploy", "docs", "unskew")
FUNCTION_LINES_MAX = 50
FILE_LINES_MAX = 400


def tracked(root: Path, *patterns: str) -> list[Path]:
    """The files git tracks, or all files where there is no git (an unpacked archive)."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [root / name for name in listed.splitlines() if (root / name).is_file()]


@pytest.mark.parametrize(
    "name",
    [
        "docker-compose.yml jobs grouping config deploy tests dashboards",
        "benchmarks docs README.md CONTRIBUTING.md CHANGELOG.md LICENSE Makefile .ci/run",
        "docs/ARCHITECTURE.md docs/glossary.md docs/decisions",
    ],
)
def test_the_layout_is_there(root: Path, name: str) -> None:
    assert [part for part in name.split() if not (root / part).exists()] == []


def test_locks_pin_by_hash_and_name_no_address(root: Path) -> None:
    for lock in (root / "deploy" / "locks").glob("*.txt"):
        text = lock.read_text()
        pins = re.findall(
            r"^\S+==\S+.*\\\n(?:\s+--hash=sha256:[0-9a-f]{64}.*\n)+", text, re.MULTILINE
        )
        assert len(pins) == len(re.findall(r"^\S+==", text, re.MULTILINE)), lock
        assert "://" not in text
        assert "--index" not in text
        assert "--find-links" not in text


def test_runtime_pins_are_the_same_in_every_lock(root: Path) -> None:
    def pins(name: str) -> dict[str, str]:
        text = (root / "deploy" / "locks" / f"{name}.txt").read_text()
        return dict(re.findall(r"^(\S+?)==(\S+)", text, re.MULTILINE))

    runtime = pins("runtime")
    for name in ("plot", "jre", "dev"):
        other = pins(name)
        assert {package: other[package] for package in runtime} == runtime, name


def test_import_roots_are_ours_in_an_isolated_interpreter(root: Path) -> None:
    names = "; ".join(f"import unskew.{name} as m; print(m.__file__)" for name in ROOTS)
    done = subprocess.run(
        [sys.executable, "-I", "-c", names], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.split() == [str(root / "unskew" / name / "__init__.py") for name in ROOTS]


def test_files_and_functions_stay_readable(root: Path) -> None:
    too_long = []
    for path in tracked(root, *(f"{name}/*.py" for name in (*ROOTS, *BESIDE, "tests"))):
        text = path.read_text()
        if len(text.splitlines()) > FILE_LINES_MAX:
            too_long.append(f"{path.relative_to(root)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and not _is_kernel(node):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    too_long.append(f"{path.relative_to(root)}: {node.name} has {lines} lines")
    assert too_long == []


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(decorator, ast.Name) and decorator.id == "kernel"
        for decorator in node.decorator_list
    )


def test_make_help_lists_every_target_for_users(root: Path) -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    makefile = (root / "Makefile").read_text()
    documented = re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    assert [line.split()[1] for line in listed.splitlines()] == documented
    assert {"demo", "test", "check"} <= set(documented)


def test_the_job_of_the_readme_is_clean(root: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    (job,) = [block for block in blocks if block.startswith("name:")]
    (tmp_path / "job.yaml").write_text(job)
    assert lint([str(tmp_path / "job.yaml")]) == []


def test_every_decision_is_numbered_and_says_what_was_looked_at(root: Path) -> None:
    records = sorted((root / "docs" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text()
        assert text.startswith(f"# {int(path.name[:4])}. "), path
        assert "**Looked at.**" in text or "**Why.**" in text, path


def test_changelog_fragments_have_a_known_kind(root: Path) -> None:
    for path in fragments(root):
        assert path.name.split(".")[-2] in {"added", "changed", "fixed", "removed"}, path
        assert path.read_text().strip()


def test_towncrier_builds_a_release_from_every_fragment(root: Path, tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md", "changelog.d", "unskew/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, tmp_path / name)
    (tmp_path / "changelog.d" / "last.removed.md").write_text("Two lines\nof one fragment.\n")
    texts = [" ".join(path.read_text().split()) for path in fragments(tmp_path)]
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "99.0.0"]

    subprocess.run([*command, "--date", "2026-01-02"], cwd=tmp_path, check=True, timeout=60)

    page = (tmp_path / "CHANGELOG.md").read_text()
    assert page.count("\n\n## 99.0.0 (2026-01-02)\n\n### ") == 1
    assert "\n\n### Removed\n\n- Two lines\n  of one fragment.\n" in page
    assert "\n\n\n" not in page
    assert fragments(tmp_path) == []
    assert [text for text in texts if text not in " ".join(page.split())] == []


def fragments(root: Path) -> list[Path]:
    folder = root / "changelog.d"
    return sorted(path for path in folder.iterdir() if path.name != "template.md.jinja")


def test_published_ports_are_loopback(root: Path) -> None:
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(str(port).startswith("127.0.0.1:") for port in ports)


def test_images_are_pinned(root: Path) -> None:
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    images = [service["image"] for service in services.values() if "image" in service]
    assert all(re.fullmatch(r"[\w./-]+:v?\d[\w.-]*", image) for image in images)
