"""Saves pictures that the clients in the daemons' pods draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nri_resmgr.kubectl.all_nodes import on_all
from nri_resmgr.kubectl.client import NAME, Kubectl
from nri_resmgr.kubectl.daemons import ChosenPod, Daemon
from nri_resmgr.kubectl.errors import CannotWrite, PluginError


def save_picture(
    path: Path,
    kubectl: Kubectl,
    daemon: Daemon,
    pod: ChosenPod | None,
    more: Sequence[str] = (),
) -> None:
    """Save a picture of a pod's CPUs and the pools considered, or of all of the node.

    Args:
        path: The file, which is replaced.
        kubectl: Runs the client.
        daemon: That of the node.
        pod: The pod; None for the whole node.
        more: Further flags of the client.

    Raises:
        AnswerRefused: The daemon does not know the pod, or is too old to draw.
        KubectlFailed: The user may not run it, or the cluster does not answer.
        CannotWrite: The operating system refuses to write the file.
    """
    query = ("explain", f"{pod.namespace}/{pod.name}") if pod else ("status",)
    flags = (*daemon.flags("--control-socket"), *more)
    svg = kubectl.output(*daemon.exec_words(*query, "--picture=-", *flags))
    try:
        path.write_bytes(svg)
    except OSError as error:
        raise _not_written(path, error) from None


def save_pictures(
    folder: Path,
    kubectl: Kubectl,
    daemons: Mapping[str, Daemon | PluginError],
    more: Sequence[str] = (),
) -> Mapping[str, Path | PluginError]:
    """Save a picture of each node, into a folder, which is made if it is not there.

    Returns:
        The file of each node, or why it has none.

    Raises:
        CannotWrite: The operating system refuses to make the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from None

    def save(daemon: Daemon) -> Path:
        path = folder / file_of(daemon.node)
        save_picture(path, kubectl, daemon, None, more)
        return path

    return on_all(daemons, save)


def file_of(name: str) -> Path:
    """Return the usual file for the picture of a pod or a node."""
    return Path(f"{NAME}-{name}.svg")


def _not_written(path: Path, error: OSError) -> CannotWrite:
    return CannotWrite(str(path), (error.strerror or str(error)).lower())
