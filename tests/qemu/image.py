"""The guest's root disk and initramfs, made of Debian packages and wheels."""

from __future__ import annotations

import lzma
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import attrs

from tests.qemu.kernel import unpack_kernel
from tests.qemu.tools import run_tool
from tests.real_host.bootstrap import bootstrap
from tests.real_host.cache import cached
from tests.real_host.debian import Suite

# Debian's Python looks here by itself, even when -I isolates it.
_SITE = Path("usr/local/lib/python3.13/dist-packages")
_PACKAGES = (
    *("containerd", "runc", "crun", "python3", "busybox-static"),
    *("numactl", "iproute2", "kmod", "systemd", "dbus"),
)
# Nothing reads these, and half of the root's size is in them.
_SUPERFLUOUS = (
    *("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale"),
    *("var/cache/apt", "var/lib/apt/lists"),
)
_WHEELS = (
    *("attrs", "msgspec", "protobuf", "pyyaml", "structlog", "grpcio", "jeepney"),
    *("hypothesis", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist"),
)
# Needed before modprobe has a root to read from; the initramfs loads them all.
_MODULES = ("virtio_blk", "overlay")
_EARLY_INIT = Path(__file__).parent / "guest" / "early-init"
_RECIPE = "1"  # Raise it when the way of building changes.


@attrs.frozen
class Image:
    """Files that QEMU boots; no run writes to them.

    Attributes:
        kernel: ELF file with a PVH entry point.
        initramfs: Loads the disk driver and mounts the root.
        root: ext4 file system with containerd, Python, pytest and the wheels.
        tree: Folder with the same Python, to be run here by chroot(1).
    """

    kernel: Path
    initramfs: Path
    root: Path
    tree: Path


def guest_image(suite: Suite) -> Image:
    """Return the image, built from the network if the cache has none.

    Building takes about two minutes, and 1 GB of the cache is ours then.

    Raises:
        PackageUnavailable: A package cannot be had.
        ToolFailed: A program did not do its part.
    """
    inputs = (_RECIPE, suite.mirror, suite.name)
    kernel = cached("qemu/kernel", inputs, lambda folder: unpack_kernel(suite, folder))
    tree = cached("qemu/tree", (*inputs, *_PACKAGES), lambda to: _debian(suite, to))
    # The guest has the very releases that this machine's tests run with.
    wheels = tuple(f"{name}=={metadata.version(name)}" for name in _WHEELS)

    def disk(folder: Path) -> None:
        root = folder / "tree"
        run_tool("cp", "-a", tree, root)
        run_tool("cp", "-a", kernel / "usr", root)
        _install(wheels, root)
        write_ext4(folder / "root", root, "1G")
        _write_initramfs(folder / "initramfs", root)
        shutil.rmtree(root)

    early = _EARLY_INIT.read_text()
    folder = cached(
        "qemu/disk", (_RECIPE, str(kernel), str(tree), early, *wheels), disk
    )
    return Image(kernel / "vmlinux", folder / "initramfs", folder / "root", tree)


def guest_versions() -> dict[str, str]:
    """Return versions of what the guest runs: its kernel and some packages.

    Raises:
        PackageUnavailable: A package cannot be had.
        ToolFailed: A program did not do its part.
    """
    image = guest_image(Suite.of("trixie"))
    [modules] = (image.kernel.parent / "usr/lib/modules").iterdir()
    status = (image.tree / "var/lib/dpkg/status").read_text()
    # A paragraph of one package, whose first line is its name.
    field = re.compile(r"^Package: (\S+)\n(?:.+\n)*?Version: (.+)$", re.MULTILINE)
    versions = dict(field.findall(status))
    names = ("containerd", "python3.13", "runc", "systemd")
    return {"linux": modules.name, **{name: versions[name] for name in names}}


def write_ext4(image: Path, content: Path, size: str) -> None:
    """Make *image* an ext4 file system of *size* (``"64M"``) holding *content*.

    Raises:
        ToolFailed: *content* does not fit.
    """
    # A run's writes are not kept, so a journal would only cost time.
    options = ("-q", "-t", "ext4", "-O", "^has_journal", "-m", "0")
    run_tool("mke2fs", *options, "-d", content, image, size)


def compile_project(image: Image, project: Path) -> None:
    """Compile *project*, a folder that the guest will mount at ``/project``.

    Raises:
        ToolFailed: A module has a syntax that the guest's Python refuses.
    """
    # Only in a mount namespace of its own, so that runs can share the tree.
    script = (
        'mount --bind "$1" "$2/project" && '
        'exec chroot "$2" python3 -m compileall -q /project'
    )
    run_tool("unshare", "--mount", "sh", "-ec", script, "sh", project, image.tree)


def _debian(suite: Suite, folder: Path) -> None:
    bootstrap(suite, _PACKAGES, folder)
    for name in _SUPERFLUOUS:
        shutil.rmtree(folder / name)
    # debootstrap copies this machine's; the guest has no network to ask.
    (folder / "etc/resolv.conf").write_text("")
    (folder / "project").mkdir()
    _compile(folder, Path("usr/lib/python3.13"))


def _install(wheels: tuple[str, ...], root: Path) -> None:
    """Let this machine's pip choose the wheels for the guest's Python."""
    abis = ("--implementation=cp", "--abi=cp313", "--abi=abi3", "--abi=none")
    platforms = (
        f"--platform={name}_x86_64"
        for name in ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
    )
    run_tool(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"),
        *("--only-binary=:all:", "--python-version=3.13", *abis, *platforms),
        *("--target", str(root / _SITE), *wheels),
    )
    # As in an editable install: a program started anywhere finds the project.
    (root / _SITE / "project.pth").write_text("/project\n")
    _compile(root, _SITE)
    _rewrite_asserts(root)


def _compile(root: Path, folder: Path) -> None:
    """Compile here what would take the emulated CPU ten times as long."""
    run_tool("chroot", root, "python3", "-m", "compileall", "-q", "-j0", f"/{folder}")


def _rewrite_asserts(root: Path) -> None:
    """Let pytest cache its own way of compiling its plugins; any start does it."""
    run_tool("chroot", root, "python3", "-m", "pytest", "--help")


def _write_initramfs(archive: Path, root: Path) -> None:
    folder = archive.with_name("early")
    for name in ("bin", "dev", "modules", "root"):
        (folder / name).mkdir(parents=True)
    shutil.copy2(root / "usr/bin/busybox", folder / "bin")
    shutil.copy2(_EARLY_INIT, folder / "init")
    for name in _MODULES:
        [module] = root.glob(f"usr/lib/modules/*/kernel/**/{name}.ko.xz")
        unpacked = lzma.decompress(module.read_bytes())
        (folder / "modules" / f"{name}.ko").write_bytes(unpacked)
    names = "\n".join(str(p.relative_to(folder)) for p in sorted(folder.rglob("*")))
    cpio = ("cpio", "--create", "--format=newc", "--quiet")
    archive.write_bytes(run_tool(*cpio, cwd=folder, stdin=names.encode()))
    shutil.rmtree(folder)
