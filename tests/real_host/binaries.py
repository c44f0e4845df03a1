"""Versions of containerd that this machine can start, and their programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import attrs

from tests.real_host.debian import PackageUnavailable, Suite

OWN = "own"
OVERRIDE: Final = "NRI_RESMGR_TEST_CONTAINERD"
_FIRST_WITH_NRI = (1, 7)
NRI_0_10: Final = (2, 2)
"""The first release with NRI 0.10: plugins validate, and change command lines."""
# An unprivileged shell's PATH lacks runc's folder.
SEARCH_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


@attrs.frozen
class Binaries:
    """One containerd release.

    Attributes:
        containerd: The daemon; ``ctr`` and the shim lie beside it.
        version: As it prints it: ``1.7.24~ds1``, ``2.1.9+unknown``.
    """

    containerd: Path
    version: str

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor number."""
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)

    @property
    def ctr(self) -> Path:
        """The command line client."""
        return self.containerd.with_name("ctr")


# Debian's unstable suite may lack a containerd for a while.
BONUS: Final = "sid"


def offered_versions() -> tuple[str, ...]:
    """Names for `binaries`: Debian suites, or the one that is installed.

    ``NRI_RESMGR_TEST_CONTAINERD`` (a path) names the only one; else a Debian
    machine fetches those of the stable and the unstable suite.
    """
    if os.environ.get(OVERRIDE):
        return (OWN,)
    try:
        Suite.of("trixie")
    except PackageUnavailable:
        return (OWN,)
    return ("trixie", BONUS)


def binaries(version: str) -> Binaries:
    """Find or fetch the containerd named *version*.

    Raises:
        PackageUnavailable: This machine cannot run it; the text says why.
    """
    if os.geteuid() != 0:
        raise PackageUnavailable("a containerd needs root")
    if not shutil.which("runc", path=SEARCH_PATH):
        raise PackageUnavailable("runc is not installed (make packages)")
    path = _own() if version == OWN else _fetched(version)
    found = Binaries(path, _version(path))
    if found.release < _FIRST_WITH_NRI:
        raise PackageUnavailable(f"{path} is containerd {found.version}: NRI needs 1.7")
    return found


def _own() -> Path:
    path = os.environ.get(OVERRIDE) or shutil.which("containerd", path=SEARCH_PATH)
    if not path or not Path(path).exists():
        raise PackageUnavailable("no containerd is installed (make packages)")
    return Path(path)


def _fetched(suite: str) -> Path:
    return Suite.of(suite).fetch("containerd") / "usr/bin/containerd"


def _version(containerd: Path) -> str:
    printed = subprocess.run(
        [containerd, "--version"], check=False, capture_output=True, text=True
    )
    version = re.search(r" v?(\d+\.\d+\S*)", printed.stdout)
    if version is None:
        reason = (printed.stderr.strip() or "it printed no version").splitlines()[-1]
        raise PackageUnavailable(f"{containerd} does not run here: {reason}")
    return version[1]
