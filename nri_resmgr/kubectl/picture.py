"""Saves the picture that the client in a daemon's pod draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nri_resmgr.kubectl.client import Kubectl
from nri_resmgr.kubectl.daemons import ChosenPod, Daemon
from nri_resmgr.kubectl.errors import CannotWrite


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
        why = (error.strerror or str(error)).lower()
        raise CannotWrite(str(path), why) from None
