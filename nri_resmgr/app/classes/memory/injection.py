"""Start of a container by ``mpolset``, which sets its memory policy."""

from __future__ import annotations

from typing import Final

from nri_resmgr.classes.memory import ResolvedPolicy
from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.model import Container, Mount

MPOLSET: Final = "/.nri-mpolset"
"""The program's path in a container."""

# As of published resources: without propagation, which some hosts cannot have.
_OPTIONS: Final = ("bind", "ro", "nosuid", "nodev")


def injected(
    adjustment: ContainerAdjustment,
    found: ResolvedPolicy,
    container: Container,
    program: str,
) -> ContainerAdjustment:
    """Mount the program, and have it start the container's command.

    Args:
        adjustment: Of the new container.
        found: Its policy.
        container: As other plugins have left it; has a command.
        program: The program's path for the runtime.
    """
    words = [MPOLSET, "--mode", str(found.mode)]
    if found.nodes:
        words += ["--nodes", str(found.nodes)]
    if found.flags:
        words += ["--flags", ",".join(found.flags)]
    # Replaced, because a plugin before this one may have set them: its words stay.
    return adjustment.replace_args((*words, "--", *container.args)).set_mount(
        Mount(MPOLSET, "bind", program, _OPTIONS)
    )
