"""The file that Node Feature Discovery reads on the host."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nri_resmgr.host.bounded import has_text
from nri_resmgr.values import HostError

FOLDER: Final = "etc/kubernetes/node-feature-discovery/features.d"
FILE: Final = "nri-resmgr"

_MODE: Final = 0o644


@dataclass(eq=False)
class FeaturesNotWritten(HostError):
    """The file of features cannot be written."""

    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; Node Feature Discovery reads this file"


def write_features(root: str, text: str) -> None:
    """Replace the file at once, so that no half of it is read; empty text removes it.

    Args:
        root: Of the host.
        text: ``NAME=VALUE`` each.

    Raises:
        FeaturesNotWritten: It cannot.
    """
    # Without a prefix on the host itself.
    path = Path(f"{root}/", FOLDER, FILE)
    # A dot: NFD reads no hidden files.
    new = path.with_name(f".{FILE}.new")
    try:
        if not text:
            path.unlink(missing_ok=True)
            return
        with suppress(OSError):  # it is written again
            if has_text(path, text):
                return
        new.write_text(text)
        new.chmod(_MODE)
        new.replace(path)
    except OSError as error:
        raise FeaturesNotWritten(path, error.strerror or str(error)) from None
