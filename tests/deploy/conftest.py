"""The manifests, resolved once."""

from pathlib import Path

import pytest

from tests.support.deploy.kustomize import Resource, resolved

WAYS = ("deployment", "spark-operator")


@pytest.fixture(scope="session")
def kubernetes(root: Path) -> Path:
    """The folder of the manifests."""
    return root / "deploy" / "kubernetes"


@pytest.fixture(scope="session", params=WAYS)
def resources(request: pytest.FixtureRequest, kubernetes: Path) -> list[Resource]:
    """All resources of one way to run the job."""
    return resolved(kubernetes / request.param)


@pytest.fixture(scope="session")
def deployment(kubernetes: Path) -> list[Resource]:
    """Those of the Deployment."""
    return resolved(kubernetes / "deployment")


@pytest.fixture(scope="session")
def operator(kubernetes: Path) -> list[Resource]:
    """Those of the SparkApplication."""
    return resolved(kubernetes / "spark-operator")
