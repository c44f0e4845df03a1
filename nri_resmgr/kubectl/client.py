"""Runs kubectl, as the user would, and reads what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nri_resmgr.kubectl.errors import (
    AnswerRefused,
    Forbidden,
    KubectlFailed,
    NoKubectl,
    NotFound,
)

# After what the command itself has printed; the exit status says as much.
_OF_EXEC: Final = re.compile(r"command terminated with exit code (\d+)")
_OF_SERVER: Final = re.compile(r"(?:Error from server(?: \((\w+)\))?|error): (.+)")

_BY_SIGNAL: Final = 128  # and the signal's number, as in shells
_KINDS: Final = {"NotFound": NotFound, "Forbidden": Forbidden}

NAME: Final = "nri-resmgr"
"""Name of the daemon's container, of its command, and before our errors."""


@dataclass(frozen=True)
class Kubectl:
    """The kubectl on PATH, with flags of the user.

    Attributes:
        flags: Which cluster and user, such as ``--context=NAME``.
    """

    flags: tuple[str, ...] = ()

    def get(self, *words: str) -> Any:
        """Return an object of the cluster, or a list of them.

        Raises:
            NoKubectl: It cannot be run.
            NotFound: There is no such object.
            Forbidden: The user lacks the right.
            KubectlFailed: Anything else.
        """
        try:
            return json.loads(self.output("get", *words, "--output=json"))
        except (ValueError, RecursionError):
            raise KubectlFailed("kubectl get has not printed JSON") from None

    def output(self, *words: str) -> bytes:
        """Return what a command prints; raises what `get` does.

        Raises:
            AnswerRefused: A command in a container has failed.
        """
        try:
            done = subprocess.run(  # noqa: S603 - the user's own program and rights
                self._command(words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise _not_run(error) from None
        if done.returncode:
            raise failure_of(done.stderr.decode(errors="replace"), done.returncode)
        return done.stdout

    def pass_through(self, *words: str) -> int:
        """Run a command on the user's own terminal; return its exit status.

        Raises:
            NoKubectl: It cannot be run.
        """
        try:
            started = subprocess.Popen(  # noqa: S603 - as above
                self._command(words),
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise _not_run(error) from None
        with started as process:
            for line in process.stderr or ():
                if said := _said(line):
                    print(said, file=sys.stderr)
        status = process.returncode
        return status if status >= 0 else _BY_SIGNAL - status

    def _command(self, words: Sequence[str]) -> list[str]:
        return ["kubectl", *self.flags, *words]


def failure_of(text: str, status: int) -> KubectlFailed | AnswerRefused:
    """Return the error that kubectl reports on standard error.

    Args:
        text: What it printed there.
        status: Its exit status, which is that of a command in a container.

    >>> print(failure_of('Error from server (NotFound): pods "web" not found', 1))
    pods "web" not found
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(_OF_EXEC.fullmatch(line) for line in lines):
        own = [line for line in lines if not _OF_EXEC.fullmatch(line)]
        why = " ".join(line.removeprefix(f"{NAME}: ") for line in own)
        return AnswerRefused(why or f"exit status {status}", status)
    # Warnings may come first; the reason is the last line.
    last = lines[-1] if lines else ""
    if found := _OF_SERVER.fullmatch(last):
        return _KINDS.get(found[1] or "", KubectlFailed)(found[2])
    return KubectlFailed(last)


def _said(line: str) -> str:
    """Return what the user reads of a line on standard error; empty for nothing."""
    text = line.rstrip("\r\n")
    if _OF_EXEC.fullmatch(text):
        return ""
    return f"{NAME}: {failure_of(text, 1)}" if _OF_SERVER.fullmatch(text) else text


def _not_run(error: OSError) -> NoKubectl:
    return NoKubectl((error.strerror or str(error)).lower())
