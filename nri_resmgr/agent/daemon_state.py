"""The parts of the daemon's state that the agent reports.

Fields that an older daemon lacks have defaults, and those of a newer one are ignored:
one version of skew works in both directions.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nri_resmgr.values import CpuSet

IGNORED: Final = "ignored"
"""The verdict on an adjustment that is for other nodes."""

JUDGED: Final = ("accepted", "rejected")
"""Verdicts on an adjustment that is for the node. A later daemon may have others."""


class Daemon(msgspec.Struct, frozen=True, rename="camel"):
    """The process.

    Attributes:
        version: Of the daemon.
        dry_run: Whether it adjusts nothing.
        last_event: Number of the last decision or refusal: what can be granted may have
            changed with it.
    """

    version: str = ""
    dry_run: bool = False
    last_event: int = 0


class Runtime(msgspec.Struct, frozen=True):
    """The container runtime.

    Attributes:
        name: Empty without a session.
        version: Its version.
    """

    name: str = ""
    version: str = ""


class Session(msgspec.Struct, frozen=True, rename="camel"):
    """The session with the runtime.

    Attributes:
        state: ``disconnected``, ``registered`` or ``synchronized``.
        ended_why: Why the last one ended.
    """

    state: str = ""
    ended_why: str = ""


class Manager(msgspec.Struct, frozen=True):
    """A manager of the kubelet that writes the same files.

    Attributes:
        why: A sentence about it.
    """

    why: str = ""


class Cpus(msgspec.Struct, frozen=True):
    """CPUs of the node by use; each online one is in exactly one of the others."""

    online: CpuSet = CpuSet()
    reserved: CpuSet = CpuSet()
    exclusive: CpuSet = CpuSet()
    shared: CpuSet = CpuSet()
    isolated: CpuSet = CpuSet()
    idle: CpuSet = CpuSet()


class Part(msgspec.Struct, frozen=True):
    """A part of the daemon that fails or hangs.

    Attributes:
        name: Of the part.
        why: Why it fails; empty if it hangs.
    """

    name: str = ""
    why: str = ""


class Verification(msgspec.Struct, frozen=True):
    """The last comparison of cgroups with decisions.

    Attributes:
        containers: Number of containers by verdict.
    """

    containers: dict[str, int] = {}


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container.

    Attributes:
        id: Its id.
        namespace: Of its pod.
        pod: Name of its pod.
        pod_uid: Kubernetes' id of its pod.
        name: Its name in the pod.
    """

    id: str = ""
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    name: str = ""


class ExtendedResource(msgspec.Struct, frozen=True):
    """An extended resource of the node.

    Attributes:
        name: As in requests.
        by: ``device-plugin`` or ``node-status``.
        value: What is available, with what containers that requested it have.
    """

    name: str = ""
    by: str = ""
    value: int = 0


class DaemonState(msgspec.Struct, frozen=True, rename="camel"):
    """The part that the agent reads of ``GET /v1/state``."""

    daemon: Daemon = Daemon()
    runtime: Runtime = Runtime()
    session: Session = Session()
    policy: str = ""
    kubelet: tuple[Manager, ...] = ()
    cpus: Cpus = Cpus()
    parts: tuple[Part, ...] = ()
    verification: Verification | None = None
    containers: tuple[Container, ...] = ()
    extended_resources: tuple[ExtendedResource, ...] = ()


class JudgedObject(msgspec.Struct, frozen=True):
    """The object that a verdict is on."""

    name: str = ""
    uid: str = ""
    generation: int = 0


class Where(msgspec.Struct, frozen=True):
    """CPUs and memory nodes of a container, as the kernel writes them."""

    cpus: str = ""
    mems: str = ""


class TriedContainer(msgspec.Struct, frozen=True):
    """A container that a document which is tried out would pin otherwise.

    Attributes:
        title: ``namespace/pod/container``.
        now: Where it is.
        then: Where it would be.
    """

    title: str = ""
    now: Where = Where()
    then: Where = Where()


class Trial(msgspec.Struct, frozen=True):
    """The changes that a document which is tried out would make.

    Attributes:
        count: Number of containers.
        containers: The first of them.
    """

    count: int = 0
    containers: tuple[TriedContainer, ...] = ()


class JudgedConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    """The verdict on the configuration that was handed over last.

    Attributes:
        object: Its object.
        digest: Of the document.
        verdict: ``accepted``, ``rejected`` or ``ignored``.
        why: Why it is not in force.
        problem: Why the present file cannot be read.
        would_change: What it would change, where it is only tried out.
    """

    object: JudgedObject = JudgedObject()
    digest: str = ""
    verdict: str = ""
    why: str = ""
    problem: str = ""
    would_change: Trial | None = None


class JudgedAdjustment(msgspec.Struct, frozen=True):
    """The verdict on one adjustment.

    Attributes:
        object: The adjustment.
        verdict: ``accepted``, ``rejected``, or ``ignored`` if it is for other nodes.
        errors: By id of a container, its own name, or ``request``.
    """

    object: JudgedObject = JudgedObject()
    verdict: str = ""
    errors: dict[str, str] = {}


class JudgedAdjustments(msgspec.Struct, frozen=True):
    """The verdict on all adjustments that were handed over last.

    Attributes:
        digest: Of their text.
        objects: Each of them.
        errors: Of all, by the same keys as those of each.
        problem: Why the present file cannot be read.
    """

    digest: str = ""
    objects: tuple[JudgedAdjustment, ...] = ()
    errors: dict[str, str] = {}
    problem: str = ""


class Verdicts(msgspec.Struct, frozen=True):
    """The answer of ``POST /v1/agent``."""

    configuration: JudgedConfiguration | None = None
    adjustments: JudgedAdjustments | None = None


class ClaimDevice(msgspec.Struct, frozen=True):
    """A part of the node that claims can have CPUs of.

    Attributes:
        name: Of the device.
        node: The number of its NUMA node.
        package: The id of its socket.
        capacity: Number of CPUs that claims can have together.
        smt: Whether its cores have several threads.
    """

    name: str = ""
    node: int = 0
    package: int = 0
    capacity: int = 0
    smt: bool = False


class WantedClaim(msgspec.Struct, frozen=True):
    """A claim that the kubelet asks the daemon for.

    Attributes:
        ask: Names this ask.
        namespace: Of the claim.
        name: Of the claim.
        uid: Of the claim.
    """

    ask: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class DaemonClaims(msgspec.Struct, frozen=True):
    """The part that the agent reads of ``GET /v1/claims``.

    Attributes:
        driver: Name of the driver; empty while it is off.
        devices: What it offers.
        wanted: What it waits for.
    """

    driver: str = ""
    devices: tuple[ClaimDevice, ...] = ()
    wanted: tuple[WantedClaim, ...] = ()
