"""Images without a registry: a docker-archive around a static busybox."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.real_host.debian import Suite

PAUSE = "nri-resmgr.test/pause:1"
WORK = "nri-resmgr.test/work:1"

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # the kernel's, OCI's
_APPLETS = ("cat", "echo", "env", "grep", "id", "ls", "nproc", "sh", "sleep", "true")
_FOLDERS = ("bin", "dev", "etc", "proc", "sys", "tmp")


def write_archive(path: Path, *more_tags: str) -> None:
    """Write one archive with both images; they share their only layer.

    Args:
        path: Of the new archive.
        more_tags: Further names of the same.

    Raises:
        PackageUnavailable: No static busybox is installed or can be fetched.

    Source:
        Docker image specification v1.2, "Combined image JSON + layer"; OCI image
        configuration for the keys of ``config``.
    """
    layer = _layer(static_busybox().read_bytes())
    config = json.dumps(_config(hashlib.sha256(layer).hexdigest())).encode()
    tags = (PAUSE, WORK, *more_tags)
    manifest = [{"Config": "config.json", "RepoTags": tags, "Layers": ["layer.tar"]}]
    path.write_bytes(
        _tar(
            {
                "config.json": config,
                "layer.tar": layer,
                "manifest.json": json.dumps(manifest).encode(),
            }
        )
    )


def static_busybox() -> Path:
    """The machine's busybox if it needs no libraries, else Debian's.

    Raises:
        PackageUnavailable: Neither can be had.
    """
    own = shutil.which("busybox", path="/bin:/usr/bin")
    if own:
        # ldd fails on what is not dynamic.
        ldd = subprocess.run(["ldd", own], capture_output=True, check=False)
        if ldd.returncode:
            return Path(own)
    return Suite.of("trixie").fetch("busybox-static") / "usr/bin/busybox"


def _config(layer_digest: str) -> dict[str, object]:
    machine = platform.machine()
    return {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "config": {
            "Cmd": ["/bin/sleep", "2147483647"],
            "Env": ["PATH=/bin"],
            # The first process of a pid namespace ignores SIGTERM by default.
            "StopSignal": "SIGKILL",
        },
    }


def _layer(busybox: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in _FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            layer.addfile(entry)
        entry = tarfile.TarInfo("bin/busybox")
        entry.mode, entry.size = 0o755, len(busybox)
        layer.addfile(entry, io.BytesIO(busybox))
        for applet in _APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(entry)
    return buffer.getvalue()


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
