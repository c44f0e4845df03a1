"""The sockets that a kubelet serves on its node, below its root directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

DEFAULT_KUBELET_DIR: Final = "/var/lib/kubelet"


class KubeletService(msgspec.Struct, frozen=True):
    """A service of the kubelet.

    Attributes:
        name: As gRPC names it.
        socket: Its place below the kubelet's root directory.
        remedy: What the node's owner does where it is not served.
    """

    name: str
    socket: str
    remedy: str


PODS_API: Final = KubeletService(
    "v1alpha1.Pods",
    "pods-api/pods-api.sock",
    "kubelets have it from 1.37 on, and 1.36 with the feature gate PodsAPI",
)
POD_RESOURCES: Final = KubeletService(
    "v1.PodResourcesLister",
    "pod-resources/kubelet.sock",
    "kubelets have it from 1.28 on",
)

_OFF: Final = ("", "none")


def kubelet_dir(text: str) -> Path | None:
    """Return the directory that ``--kubelet-dir`` names; None for none."""
    return None if text in _OFF else Path(text)


WhyNoDevices: TypeAlias = Callable[[], str]
"""Returns why the devices of containers are unknown; empty where they are known."""


def why_no_devices(folder: Path | None) -> str:
    """Return why a kubelet whose root directory is *folder* reports no devices.

    Returns:
        Empty where it has the socket, or where only others may look for it.
    """
    if folder is None:
        return "--kubelet-dir is none"
    path = folder / POD_RESOURCES.socket
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"{path}: no such socket; {POD_RESOURCES.remedy}"
    except OSError:
        return ""
    return ""
