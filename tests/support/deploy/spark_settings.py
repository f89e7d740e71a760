"""Which settings Spark really has: the names that its own classes hold."""

import re
import zipfile
from functools import cache
from pathlib import Path

import pyspark

_NAME = re.compile(rb"spark\.[A-Za-z0-9.]+")
_JARS = {
    "spark-core_*.jar": re.compile(r"org/apache/spark/internal/config/\w+\$?\.class"),
    "spark-common-utils_*.jar": re.compile(r"org/apache/spark/internal/config/\w+\$?\.class"),
    "spark-kubernetes_*.jar": re.compile(r"org/apache/spark/deploy/k8s/Config\$\.class"),
}


@cache
def known() -> frozenset[str]:
    """Every name of a setting in Spark's core and its Kubernetes module."""
    names: set[str] = set()
    for pattern, wanted in _JARS.items():
        for jar in (Path(pyspark.__file__).parent / "jars").glob(pattern):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if wanted.fullmatch(name):
                        texts = _NAME.findall(archive.read(name))
                        names.update(text.decode() for text in texts)
    return frozenset(names)


def settings_of(text: str) -> dict[str, str]:
    """A spark-defaults.conf: names and values."""
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    return {line[0]: line[1] for line in lines if line and not line[0].startswith("#")}
