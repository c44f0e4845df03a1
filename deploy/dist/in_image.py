"""The packages of Debian and of Python in an image."""

from __future__ import annotations

import email.parser
import json
import re
import tarfile
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from packaging.utils import canonicalize_name
from parts import Component, license_of

_WANTED: Final = re.compile(
    r"var/lib/dpkg/status\.d/.+|usr/share/doc/[^/]+/copyright|usr/lib/os-release"
    r"|.+/site-packages/[^/]+\.dist-info/METADATA"
)
_DOC: Final = PurePosixPath("usr/share/doc")
# Source: Debian's machine-readable debian/copyright, "License".
_LICENSE: Final = re.compile(r"(?m)^License: *(\S.*?) *$")


def components_of_image(archive: Path) -> tuple[tuple[Component, ...], str]:
    """Return the packages in an OCI archive of ``make image``, and its digest."""
    with tarfile.open(archive) as opened:
        [manifest] = _json(opened, "./index.json")["manifests"]
        files: dict[str, str] = {}
        for layer in _json(opened, _blob(manifest["digest"]))["layers"]:
            with tarfile.open(
                fileobj=opened.extractfile(_blob(layer["digest"]))
            ) as contents:
                files |= _files(contents)
    os_release = dict(
        line.replace('"', "").split("=", 1)
        for line in files["usr/lib/os-release"].splitlines()
        if "=" in line
    )
    components = []
    for path, text in files.items():
        if path.startswith("var/lib/dpkg/status.d/"):
            package = _parsed(text)
            copyright_ = files.get(f"{_DOC}/{package['Package']}/copyright", "")
            components.append(_of_debian(package, copyright_, os_release))
        elif path.endswith(".dist-info/METADATA"):
            components.append(_of_python(_parsed(text)))
    return tuple(components), manifest["digest"]


def _files(layer: tarfile.TarFile) -> dict[str, str]:
    """Return the files that describe packages; links between folders are resolved."""
    found, links = {}, {}
    for member in layer:
        path = PurePosixPath(member.name)
        if member.isfile() and _WANTED.fullmatch(str(path)):
            file = layer.extractfile(member)
            assert file is not None
            found[str(path)] = file.read().decode("utf-8", "replace")
        elif member.issym() and path.parent == _DOC:
            links[path] = _DOC / member.linkname
    for path, target in links.items():
        if text := found.get(f"{target}/copyright"):
            found[f"{path}/copyright"] = text
    return found


def _of_debian(
    package: Message, copyright_: str, os_release: dict[str, str]
) -> Component:
    name, version = package["Package"], package["Version"]
    release = f"{os_release['ID']}-{os_release.get('VERSION_ID', '')}"
    purl = (
        f"pkg:deb/{os_release['ID']}/{quote(name)}@{quote(version, safe=':')}"
        f"?arch={package['Architecture']}&distro={release}"
    )
    licenses = ()
    # Other files are free text, which states no name.
    if copyright_.startswith("Format:"):
        licenses = tuple(sorted(set(_LICENSE.findall(copyright_))))
    return Component(name, version, purl, licenses=licenses)


def _of_python(metadata: Message) -> Component:
    name, version = canonicalize_name(metadata["Name"]), metadata["Version"]
    expression, licenses = license_of(metadata)
    return Component(name, version, f"pkg:pypi/{name}@{version}", expression, licenses)


def _parsed(text: str) -> Message:
    return email.parser.Parser().parsestr(text)


def _blob(digest: str) -> str:
    return f"./blobs/{digest.replace(':', '/')}"


def _json(archive: tarfile.TarFile, member: str) -> Any:
    file = archive.extractfile(member)
    assert file is not None
    return json.load(file)
