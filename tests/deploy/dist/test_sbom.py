"""Bills of materials are valid, and name what is in the wheel and in the image."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.built_image import Image, built_image
from tests.deploy.dist.released import ROOT

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("release")]

SCHEMA: Final = json.loads((Path(__file__).parent / "cyclonedx-1.6.json").read_text())
EXTRAS: Final = ("", "kubelet", "kubernetes", "otel", "otel-grpc", "systemd")


def validate(document: dict[str, Any]) -> None:
    """Check what the schema says, and that references lead to a component."""
    jsonschema.Draft7Validator(SCHEMA).validate(document)
    parts = [document["metadata"]["component"], *document["components"]]
    references = [one["bom-ref"] for one in parts]
    assert len(set(references)) == len(references)
    assert {
        name
        for one in document["dependencies"]
        for name in (one["ref"], *one["dependsOn"])
    } <= set(references)


def versions(document: dict[str, Any], kind: str) -> dict[str, str]:
    return {
        one["name"]: one["version"]
        for one in document["components"]
        if one["purl"].startswith(f"pkg:{kind}/")
    }


def installed(name: str, *extras: str) -> dict[str, str]:
    """Return what a package needs of those installed here, with itself."""
    found: dict[str, str] = {}
    todo = [(name, extra) for extra in extras]
    while todo:
        one, extra = todo.pop()
        package = importlib.metadata.distribution(one)
        found[one] = package.version
        for text in package.requires or ():
            needed = Requirement(text)
            other = canonicalize_name(needed.name)
            applies = not needed.marker or needed.marker.evaluate({"extra": extra})
            if applies and other not in found:
                todo += [(other, more) for more in ("", *needed.extras)]
    return found


@pytest.fixture
def of_wheel(release: Path) -> dict[str, Any]:
    [path] = release.glob("*-wheel.cdx.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_that_of_the_wheel_is_valid(of_wheel: dict[str, Any]) -> None:
    validate(of_wheel)


def test_the_schema_is_the_strict_one(of_wheel: dict[str, Any]) -> None:
    of_wheel["components"][0]["licence"] = "MIT"

    with pytest.raises(jsonschema.ValidationError, match="'licence' was unexpected"):
        validate(of_wheel)


def test_it_has_what_the_wheel_and_its_extras_need(of_wheel: dict[str, Any]) -> None:
    expected = installed("nri-resmgr", *EXTRAS)
    ours = expected.pop("nri-resmgr")
    found = versions(of_wheel, "pypi")

    # Other Pythons need these, too.
    assert set(found) - set(expected) <= {"importlib-metadata", "typing-extensions"}
    assert {name: found.get(name) for name in expected} == expected
    assert of_wheel["metadata"]["component"]["version"] == ours


def test_what_only_extras_need_is_optional(of_wheel: dict[str, Any]) -> None:
    required = {
        one["name"] for one in of_wheel["components"] if one["scope"] == "required"
    }

    assert required == set(installed("nri-resmgr", "")) - {"nri-resmgr"}


def test_the_graph_is_what_the_packages_require(of_wheel: dict[str, Any]) -> None:
    name_of = {one["purl"]: one["name"] for one in of_wheel["components"]}
    name_of[of_wheel["metadata"]["component"]["purl"]] = "nri-resmgr"
    needs = {
        name_of[one["ref"]]: {name_of[other] for other in one["dependsOn"]}
        for one in of_wheel["dependencies"]
    }

    direct = {
        canonicalize_name(Requirement(text).name)
        for text in importlib.metadata.requires("nri-resmgr") or ()
        if not re.search(r"extra == '(cel|dev|fuzz|site)'", text.replace('"', "'"))
    }
    assert needs["nri-resmgr"] == direct
    assert needs["httpcore2"] == {"h11", "truststore"}
    assert needs["msgspec"] == set()
    assert set(needs) == set(name_of.values())


def test_each_package_has_its_license_and_the_hashes_of_the_lock(
    of_wheel: dict[str, Any],
) -> None:
    lock = (ROOT / "tests" / "requirements.txt").read_text()

    for one in of_wheel["components"]:
        pinned = re.escape(f"{one['name']}=={one['version']}")
        [entry] = re.findall(rf"(?m)^{pinned}\b.*\n((?: +--hash=.*\n)+)", lock)
        [files] = one["externalReferences"]
        assert one["licenses"], one["name"]
        assert [file["content"] for file in files["hashes"]] == sorted(
            re.findall(r"sha256:(\w{64})", entry)
        )


@pytest.mark.containerd
@pytest.mark.timeout(600)
def test_that_of_the_image_has_its_packages(tmp_path: Path) -> None:
    image = built_image()
    shutil.copy(image.archive, tmp_path)
    program = ROOT / "deploy" / "dist" / "sbom.py"
    subprocess.run([sys.executable, program, tmp_path], check=True)
    [path] = tmp_path.glob("*-image.cdx.json")
    document = json.loads(path.read_text())

    validate(document)
    [manifest] = image.index["manifests"]
    component = document["metadata"]["component"]
    assert component["purl"] == f"pkg:oci/nri-resmgr@{manifest['digest']}"
    assert versions(document, "deb") == _debian(image)
    assert versions(document, "pypi") == {
        canonicalize_name(match[1]): match[2]
        for file in image.files()
        if (match := re.search(r"/([^/]+)-([^/-]+)\.dist-info/METADATA$", file.name))
    }
    licensed = {one["name"] for one in document["components"] if "licenses" in one}
    assert {"openssl", "libexpat1", "zlib1g", "nri-resmgr", "protobuf"} <= licensed


def _debian(image: Image) -> dict[str, str]:
    """Return the packages of the image's distribution."""
    found = {}
    with tarfile.open(image.archive) as archive:
        for layer in image.manifest["layers"]:
            name = f"./blobs/{layer['digest'].replace(':', '/')}"
            with tarfile.open(fileobj=archive.extractfile(name)) as files:
                for member in files:
                    file = files.extractfile(member) if member.isfile() else None
                    if file and member.name.startswith("var/lib/dpkg/status.d/"):
                        lines = file.read().decode().splitlines()
                        fields = dict(
                            line.split(": ", 1)
                            for line in lines
                            if re.match(r"(Package|Version): ", line)
                        )
                        found[fields["Package"]] = fields["Version"]
    return found
