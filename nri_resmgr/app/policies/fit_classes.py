"""RDT and block I/O classes of a document, held against the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nri_resmgr.app.classes.blockio.host import BlockIoHost
from nri_resmgr.app.classes.rdt.writer import opener
from nri_resmgr.classes.rdt import Capabilities, plan_of
from nri_resmgr.classes.rdt.errors import BadClass, CannotAllocate, TooManyClasses
from nri_resmgr.config import BadSetting, PolicyConfig
from nri_resmgr.config.rdt_use import RdtUse
from nri_resmgr.host.resctrl import ResctrlOptions
from nri_resmgr.host.resctrl.errors import ResctrlNotMounted
from nri_resmgr.host.tree import Tree
from nri_resmgr.values import HostError

_RDT: Final = "$.spec.control.rdt"
_BLOCKIO: Final = "$.spec.control.blockio.classes"
_NOTHING: Final = Capabilities({})
_KEYS: Final = {"L2": "l2Allocation", "L3": "l3Allocation", "MB": "mbAllocation"}


def fit_classes(config: PolicyConfig, tree: Tree) -> Iterator[tuple[str, str]]:
    """Say what of its classes a host has only in part; path and reason.

    Raises:
        BadSetting: It cannot have something that it has to have.
    """
    if config.rdt is not None:
        yield from _fit_rdt(config.rdt, tree)
    if config.blockio is not None and config.blockio.classes:
        host = BlockIoHost(tree)
        for name, one in host.classes(config.blockio.classes).items():
            for notice in host.notices(one):
                yield f"{_BLOCKIO}.{name}", str(notice)


def _fit_rdt(use: RdtUse, tree: Tree) -> Iterator[tuple[str, str]]:
    can = _NOTHING
    try:
        can = opener(tree, None)(ResctrlOptions()).capabilities()
    except ResctrlNotMounted as error:
        # Many nodes have one document, and not all of them RDT.
        yield _RDT, str(error)
    except HostError as error:
        yield _RDT, str(error)
        return  # what it can is not known
    if use.config is None:
        return
    try:
        plan = plan_of(use.config, can)
    except (BadClass, CannotAllocate) as error:
        path = _path_of(error.partition, error.class_name, error.resource)
        raise BadSetting(path, str(error)) from error
    except TooManyClasses as error:
        if can != _NOTHING:
            raise BadSetting(f"{_RDT}.partitions", str(error)) from error
        return  # already told
    for why in plan.ignored:
        yield f"{_RDT}.partitions", why


def _path_of(partition: str, class_name: str, resource: str) -> str:
    path = f"{_RDT}.partitions"
    if partition:
        path += f".{partition}"
    if class_name:
        path += f".classes.{class_name}"
    level = next((key for name, key in _KEYS.items() if resource.startswith(name)), "")
    return f"{path}.{level}" if partition and level else path
