"""Writes bills of materials in CycloneDX 1.6: what a release consists of.

Usage: sbom.py FOLDER. It writes to *FOLDER* that of the wheel, and that of each image of
which the archive is there. The same inputs give the same bytes; ``SOURCE_DATE_EPOCH`` is the
time in them.

It is written here since no tool in Python has all of it: that of CycloneDX reads hashes
from a lock file or licenses from an environment, and knows no packages of Debian. A
test validates the result against the published schema.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from in_image import components_of_image
from locked import components_of_wheel
from parts import Component

_ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True)
class _Product:
    """What a document is about; *kind* is a type of CycloneDX's components."""

    kind: str
    name: str
    version: str
    purl: str


def main(folder: Path) -> None:
    """Write the documents to *folder*."""
    table = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = table["project"]
    name, version = project["name"], project["version"]
    wheel = _Product("library", name, version, f"pkg:pypi/{name}@{version}")
    lock = _ROOT / "tests" / "requirements.txt"
    needed = components_of_wheel(project, lock, wheel.purl)
    _write(folder / f"{name}-{version}-wheel.cdx.json", _document(wheel, needed))
    for archive in sorted(folder.glob(f"{name}-{version}*.oci.tar")):
        found, digest = components_of_image(archive)
        image = _Product("container", name, version, f"pkg:oci/{name}@{digest}")
        stem = archive.name.removesuffix(".oci.tar")
        _write(folder / f"{stem}-image.cdx.json", _document(image, found))


def _document(product: _Product, components: Sequence[Component]) -> dict[str, Any]:
    ordered = sorted(components, key=lambda one: one.purl)
    time = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    contents = {
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": product.kind,
                "bom-ref": product.purl,
                "name": product.name,
                "version": product.version,
                "licenses": [{"expression": "Apache-2.0"}],
                "purl": product.purl,
            },
        },
        "components": [one.entry() for one in ordered],
        "dependencies": _dependencies(product, ordered),
    }
    # The format wants an id of each document that is made; the same one for the same.
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(contents))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **contents,
    }


def _dependencies(
    product: _Product, components: Sequence[Component]
) -> list[dict[str, Any]]:
    """Return which component needs which: the reverse of ``needed_by``.

    A component without an entry has unknown needs, one with an empty entry has none.
    """
    references = [product.purl, *(one.purl for one in components if one.needed_by)]
    return [
        {
            "ref": reference,
            "dependsOn": [
                one.purl
                for one in components
                if reference in (one.needed_by or (product.purl,))
            ],
        }
        for reference in references
    ]


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
