"""CDI files, by which a runtime adds variables to the containers of a claim.

The folder is usually in memory: files are gone after a reboot, and written again when
the kubelet prepares the claims of its pods again.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.values import HostError

DEFAULT_CDI_DIR: Final = "/var/run/cdi"

_VERSION: Final = "0.5.0"  # of the specification; containerd 1.7 and CRI-O read it
_UID: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?", re.ASCII)


@dataclass(eq=False)
class CdiUnwritable(HostError):
    """A CDI file cannot be written or removed."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class CdiFiles:
    """A file for each claim, with one device that has its name.

    Args:
        folder: The folder that the runtime reads; made if it is missing.
        kind: The kind of the devices, ``vendor.domain/class``.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        self._prefix = kind.replace("/", "_")

    def device_of(self, uid: str) -> str:
        """Return the name by which the kubelet hands a claim to the runtime."""
        return f"{self._kind}={uid}"

    def check(self, uid: str) -> None:
        """Check that a claim's UID can be the name of a file.

        Raises:
            CdiUnwritable: It cannot.
        """
        if not _UID.fullmatch(uid):
            raise CdiUnwritable(uid[:80], "the UID is not a valid file name")

    def write(self, uid: str, variables: tuple[str, ...]) -> None:
        """Write the file of a claim, whether there is one or not.

        Raises:
            CdiUnwritable: It cannot be written.
        """
        path = self._path(uid)
        device = {"name": uid, "containerEdits": {"env": list(variables)}}
        spec = {"cdiVersion": _VERSION, "kind": self._kind, "devices": [device]}
        # Runtimes read files that end in .json or .yaml only.
        new = path.with_name(f".{path.name}.new")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with open(new, "wb", opener=_as_secret) as file:
                file.write(json.dumps(spec).encode())
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        except OSError as error:
            raise CdiUnwritable(str(path), error.strerror or str(error)) from None

    def remove(self, uid: str) -> None:
        """Remove the file of a claim, if there is one.

        Raises:
            CdiUnwritable: It cannot be removed.
        """
        path = self._path(uid)
        try:
            with suppress(FileNotFoundError):
                path.unlink()
        except OSError as error:
            raise CdiUnwritable(str(path), error.strerror or str(error)) from None

    def _path(self, uid: str) -> Path:
        self.check(uid)
        return self._folder / f"{self._prefix}-{uid}.json"


def _as_secret(path: str, flags: int) -> int:
    # It has what proves that a container has the claim.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
