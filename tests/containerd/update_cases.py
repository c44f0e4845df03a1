"""Updates that two plugins reply to one request, as cases for real and test runtimes.

Containers stand here by their names: `app` and `db` run, `late` is created and not
started, `old` has ended. `new` is being created, where that is the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

import attrs

from nri_resmgr.stub import ContainerAdjustment, ContainerUpdate, LinuxResources
from nri_resmgr.stub.model import LinuxContainerUpdate
from tests.real_host.resources import MIB

Updates: TypeAlias = tuple[ContainerUpdate, ...]
Pairs: TypeAlias = Mapping[str, tuple[Updates, Updates]]

NEW: Final = ContainerUpdate("new")
APP: Final = ContainerUpdate("app")
DB: Final = ContainerUpdate("db")
LATE: Final = ContainerUpdate("late")
OLD: Final = ContainerUpdate("old")
UNKNOWN: Final = ContainerUpdate("unknown")
NAMELESS: Final = ContainerUpdate("")

MARKED: Final = ContainerUpdate(
    "late",
    LinuxContainerUpdate(
        LinuxResources(unified={"-memory.low": "", "memory.low": "2"})
    ),
)

# No machine of ours has this CPU, so no runtime can apply it.
NO_CPU: Final = "1023"

_MEMORY: Final = 80 * MIB


@attrs.frozen
class Case:
    """What two plugins reply to a request about one container.

    Attributes:
        method: The request: ``CreateContainer``, ``UpdateContainer`` or
            ``StopContainer``.
        first: Updates of the plugin that is called first.
        second: Updates of the other one.
        adjustments: What the two change in the container that is being created.
        unupdatable: Containers whose updates the runtime cannot apply.
    """

    method: str
    first: Updates
    second: Updates
    adjustments: tuple[ContainerAdjustment | None, ContainerAdjustment | None] = (
        None,
        None,
    )
    unupdatable: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The name of the container that the request is about."""
        return "new" if self.method == "CreateContainer" else "app"

    @property
    def containers(self) -> tuple[str, ...]:
        """The names of the containers that there are before the request, in order."""
        named = {self.subject, *(one.container_id for one in self.first + self.second)}
        return tuple(name for name in ("app", "db", "old", "late") if name in named)


# Of any request: the two update another container than its own.
_OF_OTHERS: Final[Pairs] = {
    "CPUs twice": ((DB.set_cpus("0"),), (DB.set_cpus("1"),)),
    "CPUs twice, the second ignores it": (
        (DB.set_cpus("0"),),
        (DB.set_cpus("1").set_mems("0").ignoring_failure(),),
    ),
    "CPUs twice, only the first ignores it": (
        (DB.set_cpus("0").ignoring_failure(),),
        (DB.set_cpus("1"),),
    ),
    "CPUs twice, both ignore it": (
        (DB.set_cpus("0").ignoring_failure(),),
        (DB.set_cpus("1").ignoring_failure(),),
    ),
    "what was ignored keeps its fields": (
        (DB.set_cpus("0"),),
        (
            DB.set_memory_limit(_MEMORY).set_cpus("1").ignoring_failure(),
            DB.set_memory_limit(_MEMORY),
        ),
    ),
    "one plugin twice": ((DB.set_cpus("0"), DB.set_cpus("1")), ()),
    "one plugin twice, ignored": (
        (DB.set_cpus("0"), DB.set_cpus("1").ignoring_failure()),
        (),
    ),
    "CPUs and memory nodes": ((DB.set_cpus("0"),), (DB.set_mems("0"),)),
    "two containers": ((DB.set_cpus("0"),), (LATE.set_cpus("1"),)),
    "a container that has ended": ((OLD.set_cpus("0"),), (OLD.set_mems("0"),)),
    "an unknown container twice": ((UNKNOWN.set_cpus("0"),), (UNKNOWN.set_cpus("1"),)),
}

# Of one request, which stands for all: further fields and forms.
_FIELDS_OF_OTHERS: Final[Pairs] = {
    "CPUs twice to the same": ((DB.set_cpus("0"),), (DB.set_cpus("0"),)),
    "one conflict of two containers": (
        (DB.set_cpus("0"), LATE.set_cpus("0")),
        (LATE.set_mems("0"), DB.set_cpus("1")),
    ),
    "no container twice": ((NAMELESS.set_cpus("0"),), (NAMELESS.set_cpus("1"),)),
    "nothing": ((DB,), (DB,)),
    "shares and quota": (
        (DB.set_cpu_shares(512),),
        (DB.set_cpu_quota(20_000).set_cpu_period(50_000),),
    ),
    "a quota of 0 twice": ((DB.set_cpu_quota(0),), (DB.set_cpu_quota(0),)),
    "memory limit and swap": (
        (DB.set_memory_limit(_MEMORY),),
        (DB.set_memory_swap(2 * _MEMORY),),
    ),
    "memory limit twice": (
        (DB.set_memory_limit(_MEMORY),),
        (DB.set_memory_limit(2 * _MEMORY),),
    ),
    "pids twice": ((DB.set_pids_limit(50),), (DB.set_pids_limit(60),)),
    "RDT class twice": ((DB.set_rdt_class("a"),), (DB.set_rdt_class("b"),)),
    "block I/O class and RDT class": (
        (LATE.set_blockio_class("a"),),
        (LATE.set_rdt_class("a"),),
    ),
    "huge pages twice": (
        (LATE.set_hugepage_limit("2MB", 0),),
        (LATE.set_hugepage_limit("2MB", 2 * MIB),),
    ),
    "unified twice": (
        (LATE.set_unified("memory.low", "1"),),
        (LATE.set_unified("memory.low", "2"),),
    ),
    # Updates know no removal: a key with its mark is one more key, which the stub does
    # not build.
    "unified with a mark of removal": (
        (LATE.set_unified("memory.low", "1"),),
        (MARKED,),
    ),
}

# Of UpdateContainer: the two change what is requested.
_OF_REQUESTED: Final[Pairs] = {
    "nothing": ((), ()),
    "CPUs twice": ((APP.set_cpus("0"),), (APP.set_cpus("1"),)),
    "CPUs twice, the second ignores it": (
        (APP.set_cpus("0"),),
        (APP.set_cpus("1").set_mems("0").ignoring_failure(),),
    ),
    "CPUs twice, only the first ignores it": (
        (APP.set_cpus("0").ignoring_failure(),),
        (APP.set_cpus("1"),),
    ),
    "CPUs and memory nodes": ((APP.set_cpus("0"),), (APP.set_mems("0"),)),
    "shares of the request": ((APP.set_cpu_shares(512),), ()),
    "shares of the request twice": (
        (APP.set_cpu_shares(512),),
        (APP.set_cpu_shares(256),),
    ),
    "a memory limit beside requested shares": (
        (),
        (APP.set_memory_limit(2 * _MEMORY),),
    ),
    "no memory limit": ((APP.set_memory_limit(0),), ()),
    "swap and reservation": (
        (APP.set_memory_swap(2 * _MEMORY),),
        (APP.set_memory_reservation(_MEMORY),),
    ),
    "pids twice": ((APP.set_pids_limit(50),), (APP.set_pids_limit(60),)),
    "RDT class": ((APP.set_rdt_class("a"),), ()),
    "nothing of it": ((APP,), (APP,)),
    "it and another": ((APP.set_cpus("0"), DB.set_cpus("1")), (APP.set_mems("0"),)),
    "it, and a conflict of another": (
        (APP.set_cpus("0"), DB.set_cpus("0")),
        (DB.set_cpus("1"),),
    ),
    "one plugin twice": ((APP.set_cpus("0"), APP.set_cpus("1")), ()),
}

# Of StopContainer: the two update the container that stops.
_OF_STOPPING: Final[Pairs] = {
    "by one": ((APP.set_cpus("0"),), ()),
    "twice": ((APP.set_cpus("0"),), (APP.set_cpus("1"),)),
    "memory limit": ((APP.set_memory_limit(_MEMORY),), ()),
    "and another": ((APP.set_cpus("0"),), (DB.set_cpus("1"),)),
}

# Of CreateContainer: one of the two updates the container that is being created.
_OF_NEW: Final[Pairs] = {
    "by the first": ((NEW.set_cpus("0"),), ()),
    "by the second": ((DB.set_cpus("0"),), (NEW.set_cpus("1"),)),
    "ignored": ((NEW.set_cpus("0").ignoring_failure(),), ()),
    "behind one of another": ((DB.set_cpus("0"), NEW.set_cpus("1")), ()),
}

_ADJUST: Final = ContainerAdjustment()

# Of CreateContainer, with adjustments of its own container.
_WITH_ADJUSTMENTS: Final[Mapping[str, Case]] = {
    "new is adjusted, another updated": Case(
        "CreateContainer",
        (DB.set_cpus("0"),),
        (DB.set_mems("0"),),
        (_ADJUST.set_cpus("1"), _ADJUST.set_mems("0")),
    ),
    "a conflict of new leaves another as it was": Case(
        "CreateContainer",
        (DB.set_cpus("0"),),
        (),
        (_ADJUST.set_cpus("1"), _ADJUST.set_cpus("0")),
    ),
    "a conflict of another leaves no new container": Case(
        "CreateContainer",
        (DB.set_cpus("0"),),
        (DB.set_cpus("1"),),
        (_ADJUST.set_cpus("1"), None),
    ),
    "new is adjusted and updated": Case(
        "CreateContainer",
        (),
        (NEW.set_cpus("0"),),
        (_ADJUST.set_cpus("0"), None),
    ),
}


def _unapplied() -> Mapping[str, Case]:
    methods = ("CreateContainer", "UpdateContainer", "StopContainer")
    of_others = {
        f"{method}: an update that cannot be applied, and another": Case(
            method,
            (DB.set_cpus(NO_CPU),),
            (LATE.set_cpus("1"),),
            unupdatable=("db",),
        )
        for method in methods
    }
    return of_others | {
        "UpdateContainer: a change that cannot be applied": Case(
            "UpdateContainer",
            (APP.set_cpus(NO_CPU),),
            (DB.set_cpus("1"),),
            unupdatable=("app",),
        ),
        "UpdateContainer: an ignored change that cannot be applied": Case(
            "UpdateContainer",
            (APP.set_cpus(NO_CPU).ignoring_failure(),),
            (),
            unupdatable=("app",),
        ),
    }


def _of(method: str, what: str, pairs: Pairs) -> dict[str, Case]:
    return {
        f"{method}: {what} {name}": Case(method, *pair) for name, pair in pairs.items()
    }


CASES: Final[Mapping[str, Case]] = MappingProxyType(
    {
        **_of("CreateContainer", "of another,", _OF_OTHERS),
        **_of("UpdateContainer", "of another,", _OF_OTHERS),
        **_of("StopContainer", "of another,", _OF_OTHERS),
        **_of("UpdateContainer", "of another,", _FIELDS_OF_OTHERS),
        **_of("UpdateContainer", "of the requested,", _OF_REQUESTED),
        **_of("StopContainer", "of the stopping,", _OF_STOPPING),
        **_of("CreateContainer", "of the new,", _OF_NEW),
        **_WITH_ADJUSTMENTS,
        **_unapplied(),
    }
)
"""All cases, by names of tests."""
