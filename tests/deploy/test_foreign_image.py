"""The parts of an image for another architecture, which none of its programs makes."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.built_image import NotBuilt, archive_in, build
from tests.real_host.absent import give_up
from tests.real_host.cache import cache_root

pytestmark = [pytest.mark.containerd, pytest.mark.timeout(600)]

IMAGE: Final = Path(__file__).parents[2] / "deploy" / "image"
ARM: Final = 183  # EM_AARCH64 of elf.h
X86: Final = 62  # EM_X86_64


def other() -> tuple[str, str, int]:
    """Return name, machine and ELF number of an architecture that is not this one."""
    if platform.machine() == "aarch64":
        return "amd64", "x86_64", X86
    return "arm64", "aarch64", ARM


def elf_machine(path: Path) -> int | None:
    """Return for which machine a file is; None if it is no program."""
    start = path.read_bytes()[:20]
    return int.from_bytes(start[18:20], "little") if start[:4] == b"\x7fELF" else None


@pytest.fixture(autouse=True)
def on_debian() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        give_up("only root on Debian can build an image")
    if platform.freedesktop_os_release()["ID"] != "debian":
        pytest.skip("Ubuntu has packages of other architectures on another host")


def test_its_packages_are_of_that_architecture(tmp_path: Path) -> None:
    arch, _, number = other()
    root = tmp_path / "root"
    root.mkdir()
    # Of the image's own cache, so that packages are fetched once.
    cache = cache_root() / "image"
    cache.mkdir(parents=True, exist_ok=True)
    program = IMAGE / "debian-root.sh"
    subprocess.run(["flock", cache, program, root, cache, arch], check=True)

    status = root / "var" / "lib" / "dpkg" / "status.d"
    architectures = {
        match[1]
        for one in status.iterdir()
        if (match := re.search(r"(?m)^Architecture: (.+)$", one.read_text()))
    }
    machines = {
        elf_machine(one)
        for one in root.rglob("*")
        if one.is_file() and not one.is_symlink()
    }
    assert architectures in ({arch}, {arch, "all"})
    assert machines == {number, None}


def test_its_wheels_are_for_that_machine(tmp_path: Path) -> None:
    _, machine, _ = other()
    version = "{}.{}".format(*sys.version_info[:2])
    program = IMAGE / "wheels.sh"
    subprocess.run([program, sys.executable, version, tmp_path, machine], check=True)
    names = [one.name for one in tmp_path.iterdir()]

    compiled = [name for name in names if not name.endswith("-any.whl")]
    assert any(name.startswith("msgspec-") for name in compiled)
    assert [name for name in compiled if not name.endswith(f"_{machine}.whl")] == []


def test_it_is_built_where_the_kernel_starts_its_programs(tmp_path: Path) -> None:
    arch, machine, _ = other()

    if Path(f"/proc/sys/fs/binfmt_misc/qemu-{machine}").exists():
        build(tmp_path, ARCH=arch)
        image = archive_in(tmp_path)
        assert image.archive.name.endswith(f"-{arch}.oci.tar")
        assert image.config["architecture"] == arch
    else:
        with pytest.raises(
            NotBuilt, match=f"programs of {arch} do not run on this machine: apt-get"
        ):
            build(tmp_path, ARCH=arch)
