"""The programs of a control plane that this machine can start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import attrs

from tests.kubernetes.build import built_programs
from tests.real_host.debian import PackageUnavailable, Suite

# A folder with ``kube-apiserver``, ``etcd`` and ``kubectl``: a convention of authors of
# controllers, whose tools make one for each release.
_OVERRIDE: Final = "KUBEBUILDER_ASSETS"


@attrs.frozen
class Programs:
    """A control plane, and its client.

    Attributes:
        release: Major and minor number of the API server.
    """

    api_server: Path
    etcd: Path
    kubectl: Path
    release: tuple[int, int]


def source_of_programs() -> str:
    """Name for tests: where `programs` finds the API server."""
    return "assets" if os.environ.get(_OVERRIDE) else "debian"


def programs() -> Programs:
    """Find the programs, or build them.

    Raises:
        PackageUnavailable: This machine cannot have them; the text says why.
    """
    folder = _assets()
    if folder is not None:
        api_server, etcd = folder / "kube-apiserver", folder / "etcd"
    else:
        etcd = Suite.of("bookworm").fetch("etcd-server") / "usr" / "bin" / "etcd"
        api_server = built_programs() / "kube-apiserver"
    if shutil.which("openssl") is None:
        raise PackageUnavailable("openssl is not installed (make packages)")
    return Programs(api_server, etcd, kubectl(), _release(api_server))


def kubectl() -> Path:
    """Find a kubectl that knows components of kustomize; Debian 12's own does not.

    Raises:
        PackageUnavailable: There is none.

    Source:
        Kubernetes 1.21, release notes: kustomize 4.0.5 in kubectl.
    """
    folder = _assets()
    if folder is not None:
        return folder / "kubectl"
    try:
        return Suite.of("trixie").fetch("kubectl") / "usr" / "bin" / "kubectl"
    except PackageUnavailable as reason:
        if (own := shutil.which("kubectl")) is not None:
            return Path(own)
        raise PackageUnavailable(f"kubectl: {reason}") from None


def kubelet() -> Path:
    """Find a kubelet of the API server's release, or build it.

    Raises:
        PackageUnavailable: This machine cannot have it; the text says why.
    """
    folder = _assets()
    if folder is None:
        return built_programs() / "kubelet"
    if not (folder / "kubelet").exists():
        raise PackageUnavailable(f"{folder} ({_OVERRIDE}) has no kubelet")
    return folder / "kubelet"


def _assets() -> Path | None:
    named = os.environ.get(_OVERRIDE)
    if not named:
        return None
    missing = [
        name
        for name in ("kube-apiserver", "etcd", "kubectl")
        if not Path(named, name).exists()
    ]
    if missing:
        raise PackageUnavailable(f"{named} ({_OVERRIDE}) has no {', '.join(missing)}")
    return Path(named)


def _release(api_server: Path) -> tuple[int, int]:
    printed = subprocess.run(
        [api_server, "--version"], check=False, capture_output=True, text=True
    )
    number = re.search(r" v(\d+)\.(\d+)", printed.stdout)
    if number is None:
        reason = (printed.stderr.strip() or "it printed no version").splitlines()[-1]
        raise PackageUnavailable(f"{api_server} does not run here: {reason}")
    return int(number[1]), int(number[2])
