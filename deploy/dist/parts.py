"""One component of a bill of materials, as CycloneDX 1.6 has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import PackageMetadata
from typing import Any


@dataclass(frozen=True)
class Component:
    """A package.

    Attributes:
        name: Of the package.
        version: Of the package.
        purl: Its package URL, by which components refer to each other.
        expression: The license as an SPDX expression; empty if it is not known as one.
        licenses: Names of licenses, where there is no expression.
        sha256: Of the files of this release, in hexadecimal; any of them may be used.
        needed_by: The purls of what needs it; empty if only the product is known to.
        optional: True if only an extra needs it.
    """

    name: str
    version: str
    purl: str
    expression: str = ""
    licenses: Sequence[str] = ()
    sha256: Sequence[str] = ()
    needed_by: Sequence[str] = ()
    optional: bool = False

    def entry(self) -> dict[str, Any]:
        """Return its entry in ``components``."""
        entry: dict[str, Any] = {
            "type": "library",
            "bom-ref": self.purl,
            "name": self.name,
            "version": self.version,
            "scope": "optional" if self.optional else "required",
        }
        if self.expression:
            entry["licenses"] = [{"expression": self.expression}]
        elif self.licenses:
            entry["licenses"] = [{"license": {"name": one}} for one in self.licenses]
        entry["purl"] = self.purl
        if self.sha256:
            # "hashes" is for one file, and a release has one for each machine.
            entry["externalReferences"] = [
                {
                    "type": "distribution",
                    "url": self.purl,
                    "comment": "The files of this release; any of them may be used.",
                    "hashes": [
                        {"alg": "SHA-256", "content": one} for one in self.sha256
                    ],
                }
            ]
        return entry


def license_of(metadata: Message | PackageMetadata) -> tuple[str, tuple[str, ...]]:
    """Return the SPDX expression and else the names in a Python package's metadata."""
    for expression in metadata.get_all("License-Expression") or ():
        return expression, ()
    for text in metadata.get_all("License") or ():
        # Some packages have the whole text there; its first line is the name.
        return "", (text.partition("\n")[0].strip(),)
    return "", ()
