"""Makes one file of the kubectl plugin, and what krew installs it from.

Usage: build.py FOLDER [URL]. It needs Python only, and the same Python makes the same
files of the same source, byte by byte:

* ``kubectl-nri_resmgr``, a program: Python's zip with the package that it needs;
* ``kubectl-nri_resmgr-VERSION.tar.gz``, with the program and the license;
* ``nri-resmgr.yaml``, krew's manifest, for an archive that will be at *URL*.
"""  # noqa: INP001 - a program

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Final

_HERE: Final = Path(__file__).parent
_ROOT: Final = _HERE.parents[1]
_PACKAGE: Final = _ROOT / "nri_resmgr" / "kubectl"
_PROGRAM: Final = "kubectl-nri_resmgr"
# For people with an older Python: a sentence in place of a SyntaxError.
_MAIN: Final = """\
import sys

if sys.version_info < (3, 11):
    sys.exit("nri-resmgr: python3 is too old; Python 3.11 or newer is needed")

from nri_resmgr.kubectl.main import main

sys.exit(main())
"""
# The first that a zip can have.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def main(folder: Path, url: str = "") -> None:
    """Write the files to *folder*."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = project["project"]["version"]
    program = b"#!/usr/bin/env python3\n" + _zip_of(dict(_files(version)))
    archive = _archive_of(
        {_PROGRAM: program, "LICENSE": (_ROOT / "LICENSE").read_bytes()}
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _PROGRAM).write_bytes(program)
    (folder / _PROGRAM).chmod(0o755)
    (folder / f"{_PROGRAM}-{version}.tar.gz").write_bytes(archive)
    if url:
        digest = hashlib.sha256(archive).hexdigest()
        manifest = Template((_HERE / "krew.yaml").read_text(encoding="utf-8"))
        text = manifest.substitute(version=version, uri=url, sha256=digest)
        (folder / "nri-resmgr.yaml").write_text(text, encoding="utf-8")


def _files(version: str) -> Iterator[tuple[str, str]]:
    """Yield the files in the program, by name; versions are read from METADATA."""
    yield "__main__.py", _MAIN
    yield "nri_resmgr/__init__.py", ""
    for path in sorted(_PACKAGE.glob("*.py")):
        yield f"nri_resmgr/kubectl/{path.name}", path.read_text(encoding="utf-8")
    metadata = f"Metadata-Version: 2.1\nName: nri-resmgr\nVersion: {version}\n"
    yield f"nri_resmgr-{version}.dist-info/METADATA", metadata


def _zip_of(files: dict[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as packed:
        for name, text in files.items():
            member = zipfile.ZipInfo(name, _TIME)
            member.external_attr = 0o644 << 16
            packed.writestr(member, text, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def _archive_of(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=written, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = 0o755 if name == _PROGRAM else 0o644
            archive.addfile(member, io.BytesIO(data))
    return written.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
