"""``python -m tests.gate.other_packages newest|lowest [PYTEST ARGUMENT ...]``.

Runs the tests with other packages than the locked ones, in an environment of its own:

newest: All that an index has today. What pyproject.toml pins exactly stays.
lowest: The oldest releases of what users install that pyproject.toml allows, and the
    locked ones of all else.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from venv import EnvBuilder

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
LOCK: Final = "tests/requirements.txt"
SITE_LOCK: Final = "deploy/site/requirements.txt"
# What tests need: their packages are in the locks above.
TOOLS: Final = ("dev", "site")
# The others are tools of development.
_OF_USERS: Final = ("kubelet", "kubernetes", "otel", "otel-grpc", "systemd")
_PIN: Final = re.compile(r"^([\w.-]+)==([^ ;\\]+)", re.MULTILINE)


def locked(text: str) -> dict[str, str]:
    """Return the releases that a lock file names, by canonical name of the package."""
    return {canonicalize_name(name): release for name, release in _PIN.findall(text)}


def floors(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the lowest allowed release of each package that users install.

    Args:
        project: The table ``project`` of pyproject.toml.

    Raises:
        ValueError: A package has none.
    """
    extras = project["optional-dependencies"]
    texts = [
        *project["dependencies"],
        *(one for name in _OF_USERS for one in extras[name]),
    ]
    found: dict[str, str] = {}
    for requirement in map(Requirement, texts):
        lowest = [one.version for one in requirement.specifier if one.operator == ">="]
        if len(lowest) != 1:
            raise ValueError(f"pyproject.toml: {requirement} has no lowest release")
        found[canonicalize_name(requirement.name)] = lowest[0]
    return found


def lowest_pins(project: Mapping[str, Any], lock: Mapping[str, str]) -> dict[str, str]:
    """Return the lowest releases for users, and the locked ones of other tools.

    What these need in turn has no pin: the lock's may be too new for an old release.
    """
    extras = project["optional-dependencies"]
    tools = map(Requirement, (one for name in TOOLS for one in extras[name]))
    names = [canonicalize_name(one.name) for one in tools]
    return {name: lock[name] for name in names} | floors(project)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return lines such as ``pyyaml 6.0.3 -> 6.0.4``."""
    return [
        f"{name} {before.get(name, 'none')} -> {after[name]}"
        for name in sorted(after)
        if after[name] != before.get(name)
    ]


def main() -> int:
    """Make the environment, name what is different, run pytest."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("newest", "lowest"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    lock = locked("".join((ROOT / path).read_text() for path in (LOCK, SITE_LOCK)))
    python = ROOT / "build" / f"venv-{options.which}" / "bin" / "python"
    pins: dict[str, str] = {}
    if options.which == "lowest":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        pins = lowest_pins(project, lock)
    try:
        _install(python, pins)
    except subprocess.CalledProcessError as error:
        return error.returncode  # pip has said why
    print(f"packages that are not as in {LOCK} and {SITE_LOCK}:")
    for line in differences(lock, _installed(python)):
        print(f"  {line}", flush=True)
    words = (python, "-m", "pytest", *options.arguments)
    return subprocess.run(words, check=False, cwd=ROOT).returncode


def _install(python: Path, pins: Mapping[str, str]) -> None:
    """Install the project (editable) with its tools; what has no pin is the newest."""
    folder = python.parents[1]
    EnvBuilder(clear=True, with_pip=True, symlinks=True).create(folder)
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={pins[name]}\n" for name in pins))
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    options = ("--constraint", constraints, "--editable", f"{ROOT}[{','.join(TOOLS)}]")
    subprocess.run((*pip, *options), check=True)


def _installed(python: Path) -> dict[str, str]:
    """Return the releases in an environment, but for pip's and the project's own."""
    words = (python, "-m", "pip", "list", "--format=json", "--exclude-editable")
    done = subprocess.run(words, check=True, capture_output=True)
    releases = {one["name"]: one["version"] for one in json.loads(done.stdout)}
    releases.pop("pip", None)
    return {canonicalize_name(name): releases[name] for name in releases}


if __name__ == "__main__":
    sys.exit(main())
