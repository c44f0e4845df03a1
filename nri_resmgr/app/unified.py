"""Files of cgroup v2 into what the runtime is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.update import ContainerUpdate

ToldT = TypeVar("ToldT", ContainerAdjustment, ContainerUpdate)


def with_unified(told: ToldT, files: Mapping[str, str]) -> ToldT:
    """Add files that nobody has set yet.

    Several kinds of classes set files. Who names a file itself, by an annotation, is
    asked first, and no later kind changes what it says.

    Args:
        told: What the runtime is told so far.
        files: Text by name, as ``{"memory.high": "536870912"}``.
    """
    taken = told.resources.unified
    for name, text in files.items():
        if name not in taken:
            told = told.set_unified(name, text)
    return told
