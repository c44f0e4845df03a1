"""The lock files beside pyproject.toml, and the environments of other packages."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.gate.other_packages import (
    LOCK,
    ROOT,
    SITE_LOCK,
    TOOLS,
    differences,
    floors,
    locked,
    lowest_pins,
)

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())[
    "project"
]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OF_THE_IMAGE = ("kubelet", "kubernetes", "systemd")
LOCKS = [
    pytest.param(LOCK, ("dev",), id="development"),
    pytest.param(SITE_LOCK, ("site",), id="site"),
    pytest.param("deploy/image/requirements.txt", OF_THE_IMAGE, id="image"),
]


@pytest.mark.parametrize(("path", "extras"), LOCKS)
def test_a_lock_satisfies_the_requirements_of_the_project(
    path: str, extras: tuple[str, ...]
) -> None:
    releases = locked((ROOT / path).read_text())
    wanted = [
        *PROJECT["dependencies"],
        *(one for name in extras for one in EXTRAS[name]),
    ]

    stale = [
        str(requirement)
        for requirement in map(Requirement, wanted)
        if not requirement.specifier.contains(
            releases.get(canonicalize_name(requirement.name), "0"), prereleases=True
        )
    ]
    assert stale == [], "run 'make lock'"


@pytest.mark.parametrize(("path", "extras"), LOCKS)
def test_a_lock_has_hashes_and_no_address(path: str, extras: tuple[str, ...]) -> None:
    text = (ROOT / path).read_text()
    packages = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]

    assert len(packages) == len(locked(text)) > len(extras)
    assert [one for one in packages if "--hash=sha256:" not in one] == []
    assert "://" not in text
    assert "index" not in re.sub(r"^ *#.*$", "", text, flags=re.MULTILINE)


def test_the_image_has_releases_that_the_tests_have_run_with() -> None:
    tested = locked((ROOT / LOCK).read_text())
    image = locked((ROOT / "deploy/image/requirements.txt").read_text())

    assert differences(tested, image) == [f"pip none -> {image['pip']}"]


def test_the_site_is_built_beside_the_packages_of_the_tests() -> None:
    tested = locked((ROOT / LOCK).read_text())
    site = locked((ROOT / SITE_LOCK).read_text())

    added = {f"{name} none -> {site[name]}" for name in site.keys() - tested.keys()}
    assert set(differences(tested, site)) == added
    assert not {"mkdocs", "mkdocs-material"} & tested.keys()


def test_the_tools_of_the_oldest_packages_are_the_locked_ones() -> None:
    lock = {
        **locked((ROOT / LOCK).read_text()),
        **locked((ROOT / SITE_LOCK).read_text()),
    }
    pins = lowest_pins(PROJECT, lock)

    tools = {
        canonicalize_name(Requirement(one).name) for key in TOOLS for one in EXTRAS[key]
    }
    assert {*tools, *floors(PROJECT)} == pins.keys()
    assert pins["mkdocs"] == lock["mkdocs"]
    assert pins["pyyaml"] == "6.0.1"


def test_users_may_have_as_old_a_release_as_is_tested() -> None:
    lowest = floors(PROJECT)

    assert lowest["pyyaml"] == "6.0.1"
    assert lowest["h11"] == "0.16"
    assert set(lowest) >= {"attrs", "msgspec", "protobuf", "structlog", "grpclib"}


def test_a_dependency_without_a_lowest_release_is_an_error() -> None:
    broken = {**PROJECT, "dependencies": ["attrs<27"]}

    with pytest.raises(ValueError, match="attrs<27 has no lowest release"):
        floors(broken)
