"""Programs in Go, built with Debian's compiler without its installation."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import attrs

from tests.real_host.binaries import SEARCH_PATH
from tests.real_host.debian import Suite

RELEASE: Final = "1.19"
"""Of Debian 12's Go, which Debian 12's Kubernetes can be built with."""


class GoFailed(Exception):
    """Something could not be compiled."""


@attrs.frozen
class Go:
    """A Go compiler with its standard library, unpacked in the cache.

    Attributes:
        root: What Go calls GOROOT.
    """

    root: Path

    @classmethod
    def of(cls, suite: Suite) -> Go:
        """Fetch the compiler.

        Raises:
            PackageUnavailable: The packages cannot be had.
        """
        names = (f"golang-{RELEASE}-go", f"golang-{RELEASE}-src")
        return cls(suite.fetch(*names) / "usr" / "lib" / f"go-{RELEASE}")

    def run(self, *arguments: str | Path, path: Path, work: Path) -> None:
        """Run ``go`` as Debian builds packages: sources in folders, no modules.

        Args:
            arguments: The subcommand's.
            path: What Go calls GOPATH: imports are below its ``src``.
            work: Folder for what has been compiled; the current one, too.

        Raises:
            GoFailed: It failed; the text has its last words.
        """
        self.call(self.root / "bin" / "go", *arguments, path=path, work=work)

    def call(self, *argv: str | Path, path: Path, work: Path) -> None:
        """Run a program that reads packages of Go; like `run`.

        The priority is low: others test on this machine meanwhile.

        Raises:
            GoFailed: It failed; the text has its last words.
        """
        own = {k: v for k, v in os.environ.items() if not k.startswith(("GO", "CGO"))}
        done = subprocess.run(
            ["nice", "-n", "10", *argv],
            cwd=work,
            env=own
            | {
                "PATH": f"{self.root / 'bin'}:{SEARCH_PATH}",
                "GOROOT": str(self.root),
                "GOPATH": str(path),
                "GOCACHE": str(work / "go-cache"),
                "GO111MODULE": "off",
                "CGO_ENABLED": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip()[-2000:]
            raise GoFailed(f"{Path(argv[0]).name}: {said}")
