"""Debian's kernel for virtual machines, unpacked so that an emulator starts fast."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

from tests.qemu.tools import run_tool
from tests.real_host.debian import Suite

_META_PACKAGE = "linux-image-cloud-amd64"


def unpack_kernel(suite: Suite, folder: Path) -> None:
    """Put ``vmlinux`` and ``usr/lib/modules`` of *suite*'s kernel into *folder*.

    Raises:
        PackageUnavailable: The package cannot be had.
    """
    [package] = (
        name
        for name in suite.dependencies(_META_PACKAGE)
        if name.startswith("linux-image-")
    )
    unpacked = suite.fetch(package)
    [bzimage] = unpacked.glob("boot/vmlinuz-*")
    payload = compressed_kernel(bzimage.read_bytes())
    (folder / "vmlinux").write_bytes(run_tool("zstd", "-dcq", stdin=payload))
    [modules] = unpacked.glob("usr/lib/modules/*")
    shutil.copytree(modules, folder / "usr/lib/modules" / modules.name, symlinks=True)
    run_tool("depmod", "-b", folder / "usr", modules.name)


def compressed_kernel(bzimage: bytes) -> bytes:
    """Cut the compressed ELF file out of a bzImage.

    QEMU boots the ELF file itself. Unpacking it here takes a blink; firmware and
    decompressor of an emulated CPU need six seconds.

    Source:
        Linux Documentation/arch/x86/boot.rst: setup_sects (0x1f1), payload_offset
        (0x248), payload_length (0x24c). The payload ends with the 4 bytes of its
        unpacked size, which are no part of the zstd frame.
    """
    sectors = bzimage[0x1F1]
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    start = (sectors + 1) * 512 + offset
    return bzimage[start : start + length - 4]
