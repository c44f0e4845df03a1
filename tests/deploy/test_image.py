"""The image has what the daemon needs, and each build of it is the same."""

from __future__ import annotations

import os
import platform
import re
import stat
from pathlib import Path, PurePosixPath

import pytest

from nri_resmgr.version import our_version
from tests.deploy.built_image import Image, archive_in, build, built_image
from tests.deploy.kubectl import MANIFESTS, rendered
from tests.deploy.pod import container_of, pod_of

# Beside the pod's tests, which want the same image.
pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

IMAGE = Path(__file__).parents[2] / "deploy" / "image"
MIB = 1 << 20


def _release() -> str:
    """Return this machine's release of Debian, whose packages are in the image."""
    release = platform.freedesktop_os_release()
    if release["ID"] != "debian":
        pytest.skip("the README has the sizes of images of Debian only")
    return release["VERSION_ID"]


@pytest.fixture(scope="module")
def image() -> Image:
    return built_image()


def test_the_image_runs_the_daemon_or_another_command_without_rights(
    image: Image,
) -> None:
    config = image.config["config"]
    labels = config.pop("Labels")
    # The default, which buildah writes since 1.39.
    assert config.pop("WorkingDir", "/") == "/"

    assert config == {
        "User": "65532:65532",
        "Entrypoint": ["nri-resmgr"],
        "Cmd": ["run"],
        "Env": [
            (
                "PATH=/opt/nri-resmgr/bin:/usr/local/sbin:/usr/local/bin:"
                "/usr/sbin:/usr/bin:/sbin:/bin"
            )
        ],
    }
    assert {key.rpartition(".")[2] for key in labels} == {
        *("title", "description", "licenses", "version", "revision"),
    }
    assert labels["org.opencontainers.image.version"] == our_version()


def test_the_name_of_the_image_is_that_of_the_manifests(image: Image) -> None:
    (manifest,) = image.index["manifests"]
    named = container_of(pod_of(rendered(MANIFESTS / "base")))["image"]

    # A name without a registry is short for this one.
    assert manifest["annotations"] == {
        "org.opencontainers.image.ref.name": f"docker.io/library/{named}"
    }


def test_the_image_has_only_python_and_the_imports_of_the_daemon(image: Image) -> None:
    files = list(image.files())
    programs = {
        PurePosixPath(file.name).name
        for file in files
        if re.match(r"usr/s?bin/.", file.name)
    }
    packages = {
        match[1]
        for file in files
        if (match := re.match(r".*/site-packages/(\w+)/__init__\.py$", file.name))
    }

    assert {re.sub(r"[0-9.]+$", "", name) for name in programs} == {"python", "openssl"}
    assert packages == {
        *("attr", "attrs", "jeepney", "msgspec", "nri_proto", "nri_resmgr"),
        *("structlog", "yaml", "_yaml"),
        # gRPC with the kubelet.
        *("grpclib", "h2", "hpack", "hyperframe", "multidict"),
        # Of the agent.
        *("anyio", "h11", "httpcore2", "httpx2", "idna", "truststore"),
    }
    assert [
        file.name
        for file in files
        if file.isfile() and file.mode & (stat.S_ISUID | stat.S_ISGID)
    ] == []


def test_every_module_is_compiled_whatever_its_time(image: Image) -> None:
    files = [file.name for file in image.files() if file.isfile()]
    compiled = {
        re.sub(r"__pycache__/(\w+)\..*", r"\1.py", name)
        for name in files
        if name.endswith(".pyc")
    }
    modules = {
        name for name in files if name.endswith(".py") and "/site-packages/" in name
    }

    assert modules
    assert modules - compiled == set()


def test_the_image_has_the_size_that_the_readme_states(image: Image) -> None:
    readme = (IMAGE / "README.md").read_text()
    documented = {
        release: (int(compressed), int(unpacked))
        for release, compressed, unpacked in re.findall(
            r"Debian (\d+)\D+(\d+) MiB\D+(\d+) MiB", readme
        )
    }
    compressed, unpacked = documented[_release()]

    assert round(image.archive.stat().st_size / MIB) == pytest.approx(compressed, abs=2)
    assert round(sum(file.size for file in image.files()) / MIB) == (
        pytest.approx(unpacked, abs=4)
    )


def test_builds_of_two_checkouts_are_identical(image: Image, tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        build(tmp_path, checkout="elsewhere", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    finally:
        os.umask(umask)

    assert archive_in(tmp_path).archive.read_bytes() == image.archive.read_bytes()
