"""deploy/Dockerfile as data, and its instructions carried out natively in a folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
_PATHS = ("/build", "/opt/unskew", "/opt/entrypoint.sh", "/var/lib/unskew", "/tmp")  # noqa: S108
_PATH = re.compile(rf"(?<![\w.])({'|'.join(_PATHS)})(?![\w.-])")


@dataclass(frozen=True)
class Instruction:
    """One of a stage."""

    stage: int
    name: str
    text: str


def instructions(text: str) -> list[Instruction]:
    """All of a Dockerfile, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    read: list[Instruction] = []
    stage = -1
    for line in filter(str.strip, joined.splitlines()):
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        read.append(Instruction(stage, name, rest.strip()))
    return read


def variables(given: list[Instruction], stage: int) -> dict[str, str]:
    """What ENV sets in a stage."""
    texts = [each.text for each in given if (each.stage, each.name) == (stage, "ENV")]
    return dict(word.split("=", 1) for text in texts for word in shlex.split(text))


def copied(given: list[Instruction], stage: int) -> list[tuple[list[str], str]]:
    """What COPY takes from the context, and where it goes."""
    words = [each.text.split() for each in given if (each.stage, each.name) == (stage, "COPY")]
    return [(names[:-1], names[-1]) for names in words if not names[0].startswith("--from")]


def in_context(path: str, ignore: str) -> bool:
    """Does .dockerignore let the builder have it? As Docker decides: the last line that fits."""
    sent = True
    for line in filter(None, (text.strip() for text in ignore.splitlines())):
        if line.startswith("#"):
            continue
        pattern = line.removeprefix("!").removeprefix("**/")
        whole = "**/" not in line
        parts = [path, *map(str, Path(path).parents)][:-1] if whole else Path(path).parts
        if any(fnmatch(part, pattern) for part in parts):
            sent = line.startswith("!")
    return sent


class Image:
    """A folder that stands for the image's root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.instructions = instructions(DOCKERFILE.read_text())
        self.environment = self._base() | {
            name: self.native(value) for name, value in variables(self.instructions, 1).items()
        }
        path = self.native(variables(self.instructions, 1)["PATH"])
        self.environment["PATH"] = path.replace("/usr/bin", f"{folder}/bin").replace(":/bin", "")
        self.environment["UNSKEW_ROOT"] = self.native("/opt/unskew")

    def native(self, text: str) -> str:
        """A text with the image's paths replaced."""
        return _PATH.sub(lambda match: f"{self.folder}{match[1]}", text)

    def build(self) -> None:
        """Carry out both stages, but for what needs root: the user and the folders' owner."""
        self._programs()
        # The machine's cache of packages is used; the image's needs no cache.
        given = variables(self.instructions, 0)
        given.pop("PIP_NO_CACHE_DIR")
        environment = {**os.environ, **{name: self.native(value) for name, value in given.items()}}
        environment["PATH"] = str(self.folder / "bin")
        environment.pop("JAVA_HOME", None)
        where = self.folder / "build"
        where.mkdir()
        for instruction in self.instructions:
            if instruction.name == "RUN" and instruction.stage == 0:
                self._run(instruction.text, where, environment)
            elif instruction.name == "COPY" and not instruction.text.startswith("--from"):
                self._copy(instruction, where)
        (self.folder / "var/lib/unskew").mkdir(parents=True)
        (self.folder / "tmp").mkdir()

    def _programs(self) -> None:
        """The base image's: what every Debian has, its Python, and no Java."""
        programs = self.folder / "bin"
        programs.mkdir()
        for path in Path("/usr/bin").iterdir():
            if path.name not in {"java", "python", "python3"}:
                (programs / path.name).symlink_to(path)
        for name in ("python", "python3"):
            (programs / name).symlink_to(sys._base_executable)  # type: ignore[attr-defined]

    def _run(self, text: str, where: Path, environment: dict[str, str]) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", self.native(text)],
            cwd=where,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}"

    def _copy(self, instruction: Instruction, where: Path) -> None:
        ignore = (ROOT / ".dockerignore").read_text()
        *sources, target = instruction.text.split()
        destination = Path(self.native(target)) if target.startswith("/") else where / target
        for source in sources:
            files = [ROOT / source]
            if files[0].is_dir():
                files = sorted(path for path in files[0].rglob("*") if path.is_file())
            for file in files:
                name = file.relative_to(ROOT)
                if not in_context(str(name), ignore):
                    continue
                inside = file.relative_to(ROOT / source) if (ROOT / source).is_dir() else None
                copy = destination / inside if inside else destination
                if not inside and (target.endswith("/") or target == "."):
                    copy = destination / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)

    def _base(self) -> dict[str, str]:
        """No Java, cache or setting of this machine reaches a container."""
        kept = ("LANG", "TMPDIR")
        return {name: value for name, value in os.environ.items() if name in kept}
