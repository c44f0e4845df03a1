"""``kubectl``, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import attrs
import yaml


class KubectlFailed(Exception):
    """A command did not exit with 0; the text is what it said."""


@attrs.frozen
class Kubectl:
    """The client of one user.

    Attributes:
        program: The file.
        kubeconfig: The user's.
        namespace: Where commands act, unless they or the objects say it; empty for the
            kubeconfig's.
    """

    program: Path
    kubeconfig: Path
    namespace: str = ""

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run a command; return what it prints.

        Raises:
            KubectlFailed: It failed.
        """
        done = subprocess.run(
            [self.program, *self._flags(), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=os.environ
            | {
                "KUBECONFIG": str(self.kubeconfig),
                # Which kinds there are is cached; each server has a cache of its own.
                "KUBECACHEDIR": str(self.kubeconfig.with_suffix(".cache")),
            },
            check=False,
        )
        if done.returncode:
            raise KubectlFailed(done.stderr.strip())
        return done.stdout

    def _flags(self) -> tuple[str, ...]:
        # Not for objects with another namespace, which kubectl refuses then.
        return ("--namespace", self.namespace) if self.namespace else ()

    def within(self, namespace: str) -> Kubectl:
        """The same in another namespace."""
        return attrs.evolve(self, namespace=namespace)

    def apply(self, *objects: object, server_side: bool = False) -> str:
        """Apply objects as a file with all of them would be."""
        flags = ("--server-side",) if server_side else ()
        text = yaml.safe_dump_all(objects)
        return self("apply", *flags, "-f", "-", stdin=text)

    def get(self, *names: str) -> Any:
        """Return an object, or a list of them."""
        return json.loads(self("get", *names, "-o", "json"))
