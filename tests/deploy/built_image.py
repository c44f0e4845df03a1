"""The image, built as ``make image`` does, once for all tests of the same sources."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from tests.real_host.absent import give_up
from tests.real_host.cache import cache_root, cached

_ROOT: Final = Path(__file__).parents[2]
# What is in the image, or decides what is.
_SOURCES: Final = (
    *("nri_proto", "nri_resmgr", "plugins", "conf.d", "deploy/image"),
    *("deploy/completion", "deploy/mpolset", "deploy/dist/readme.py"),
    *("pyproject.toml", "README.md", "LICENSE"),
)
_KEPT: Final = 3  # images of earlier sources, for switching between commits


class NotBuilt(Exception):
    """The script failed; the text is what it said."""


@attrs.frozen
class Image:
    """An OCI archive.

    Attributes:
        archive: The file.
    """

    archive: Path

    @property
    def index(self) -> dict[str, Any]:
        """The archive's table of contents, with the name and the digest."""
        return self._json("./index.json")

    @property
    def manifest(self) -> dict[str, Any]:
        """Layers and their compressed sizes."""
        (one,) = self.index["manifests"]
        return self.blob(one["digest"])

    @property
    def config(self) -> dict[str, Any]:
        """How to run it."""
        return self.blob(self.manifest["config"]["digest"])

    def blob(self, digest: str) -> dict[str, Any]:
        """Return a part that is JSON."""
        return self._json(f"./blobs/{digest.replace(':', '/')}")

    def files(self) -> Iterator[tarfile.TarInfo]:
        """Everything in all layers."""
        with tarfile.open(self.archive) as archive:
            for layer in self.manifest["layers"]:
                name = f"./blobs/{layer['digest'].replace(':', '/')}"
                with tarfile.open(fileobj=archive.extractfile(name)) as files:
                    yield from files

    def _json(self, member: str) -> dict[str, Any]:
        with tarfile.open(self.archive) as archive:
            file = archive.extractfile(member)
            assert file is not None
            found: dict[str, Any] = json.load(file)
            return found


def built_image() -> Image:
    """Return the image of this checkout.

    Raises:
        NotBuilt: It cannot be built.
    """
    if os.geteuid() != 0:
        give_up("only root can build an image")
    if not shutil.which("apt-get"):
        give_up("the image is made of Debian packages: no apt-get here")
    root = cache_root() / "built-image"
    folder = cached("image", tuple(_digests()), build, root)
    done = [one for one in root.glob("image-*") if one.is_dir() and not one.suffix]
    for old in sorted(done, key=lambda one: one.stat().st_mtime)[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return archive_in(folder)


def archive_in(folder: Path) -> Image:
    """Return the only image in a folder."""
    (archive,) = folder.glob("nri-resmgr-*.oci.tar")
    return Image(archive)


def build(folder: Path, *, checkout: str = "checkout", **environment: str) -> None:
    """Build the image from a copy of the sources that no commit disturbs.

    Args:
        folder: For the archive.
        checkout: Name of the copy's folder.
        environment: Variables for the script.

    Raises:
        NotBuilt: The script failed.
    """
    copy = folder / checkout
    for name in _SOURCES:
        skipped = shutil.ignore_patterns("__pycache__")
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, copy / name, ignore=skipped)
        else:
            shutil.copy(_ROOT / name, copy / name)
    done = subprocess.run(
        [copy / "deploy" / "image" / "build.sh", folder],
        env=os.environ
        | {"PYTHON": sys.executable, "SOURCE_DATE_EPOCH": "1700000000"}
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    shutil.rmtree(copy)
    if done.returncode:
        raise NotBuilt(done.stderr)


def _digests() -> Iterator[str]:
    """One for each file that decides what is in the image, and for the distribution."""
    yield Path("/etc/os-release").read_text()
    for name in _SOURCES:
        top = _ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
                yield f"{path.relative_to(_ROOT)} {digest}"
