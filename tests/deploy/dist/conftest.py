"""One release for all tests that read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.dist.released import build, commit


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit; do not change it."""
    return commit(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="session")
def release(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a release without an image."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    done = build(checkout, folder)
    assert done.returncode == 0, done.stderr
    return folder
