"""The packages that the wheel needs, of the lock file of development.

The lock has versions and hashes of all that users install, and of tools besides. The
licenses are those of the packages that are installed here, in the same versions.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from parts import Component, license_of

_RELEASE: Final = re.compile(r"([\w.-]+)==([^ ;\\]+)(?: ; ([^\\]+))?")
_HASH: Final = re.compile(r" +--hash=sha256:(\w+)")
_NEEDED_BY: Final = re.compile(r"    (?:# via|#  ) ([\w.-]+)")
# Extras for those who develop and test, not for users.
_NOT_USERS: Final = frozenset({"cel", "dev", "fuzz", "site"})


@dataclass
class _Release:
    version: str
    marker: str
    sha256: list[str] = field(default_factory=list)
    needed_by: list[str] = field(default_factory=list)


def components_of_wheel(
    project: Mapping[str, Any], lock: Path, wheel: str
) -> tuple[Component, ...]:
    """Return what the wheel needs, with what its extras for users need.

    Args:
        project: The table ``project`` of pyproject.toml.
        lock: The lock file, as ``uv pip compile`` writes it.
        wheel: The purl of the wheel.
    """
    releases = {
        name: one for name, one in _releases(lock) if _is_for_linux(project, one.marker)
    }
    required = _names(project["dependencies"])
    direct = required.union(
        *(
            _names(needed)
            for extra, needed in project["optional-dependencies"].items()
            if extra not in _NOT_USERS
        )
    )
    always, all_needed = _closure(required, releases), _closure(direct, releases)
    purls = {name: f"pkg:pypi/{name}@{releases[name].version}" for name in all_needed}
    components = []
    for name in all_needed:
        release = releases[name]
        expression, licenses = _license(name, release.version)
        needed_by = [purls[one] for one in release.needed_by if one in purls]
        components.append(
            Component(
                name,
                release.version,
                purls[name],
                expression,
                licenses,
                sorted(release.sha256),
                sorted([*needed_by, *([wheel] if name in direct else [])]),
                optional=name not in always,
            )
        )
    return tuple(components)


def _releases(lock: Path) -> Iterator[tuple[str, _Release]]:
    release = _Release("", "")
    for line in lock.read_text(encoding="utf-8").splitlines():
        if found := _RELEASE.match(line):
            release = _Release(found[2], (found[3] or "").strip())
            yield canonicalize_name(found[1]), release
        elif found := _HASH.match(line):
            release.sha256.append(found[1])
        elif found := _NEEDED_BY.match(line):
            release.needed_by.append(canonicalize_name(found[1]))


def _is_for_linux(project: Mapping[str, Any], marker: str) -> bool:
    """Whether a Python of the classifiers needs it on Linux."""
    versions = [
        one.rpartition(" ")[2]
        for one in project["classifiers"]
        if "Python :: 3." in one
    ]
    return not marker or any(
        Marker(marker).evaluate(
            {
                "sys_platform": "linux",
                "python_version": version,
                "python_full_version": f"{version}.0",
            }
        )
        for version in versions
    )


def _names(requirements: Iterable[str]) -> frozenset[str]:
    return frozenset(canonicalize_name(Requirement(one).name) for one in requirements)


def _closure(names: frozenset[str], releases: Mapping[str, _Release]) -> frozenset[str]:
    """Return the names with all that they need."""
    needs = defaultdict(set)
    for name, release in releases.items():
        for other in release.needed_by:
            needs[other].add(name)
    found, new = frozenset(names), frozenset(names)
    while new:
        new = frozenset().union(*(needs[name] for name in new)) - found
        found |= new
    return found


def _license(name: str, version: str) -> tuple[str, tuple[str, ...]]:
    try:
        found = importlib.metadata.metadata(name)
    except importlib.metadata.PackageNotFoundError:
        return "", ()
    return license_of(found) if found["Version"] == version else ("", ())
