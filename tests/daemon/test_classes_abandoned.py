"""After a fault, nothing reports that containers still have their classes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nri_resmgr.control.classes import classes_of
from nri_resmgr.daemon.parts import Daemon, Reconcilers
from nri_resmgr.daemon.targets import BlockIoTarget, RdtTarget
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Synchronized
from tests.control.daemon_parts import make_parts
from tests.daemon.faulty import WHY, Faulty, faulty_daemon

DOCUMENT = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: 750m}
  control:
    rdt: {enable: true, partitions: {p: {classes: {gold: {}}}}}
    blockio: {enable: true, classes: {slow: [{Weight: 50}]}}
"""

Service = Callable[[Daemon], Awaitable[None]]


async def rdt(daemon: Daemon) -> None:
    await daemon.reconcilers.rdt.run(RdtTarget(daemon))


async def blockio(daemon: Daemon) -> None:
    await daemon.reconcilers.blockio.run(BlockIoTarget(daemon))


@pytest.mark.parametrize(
    ("kind", "service"),
    [
        pytest.param("rdt", rdt, id="RDT"),
        pytest.param("blockio", blockio, id="block I/O"),
    ],
)
async def test_a_fault_is_reported(kind: str, service: Service) -> None:
    parts, reconcilers = make_parts(document=DOCUMENT), Reconcilers()
    for one in reconcilers.observers:
        synchronized = Synchronized((), pods=frozenset())
        one.decided(synchronized, Decision(parts.policy.state, ()))
    with pytest.raises(ZeroDivisionError):
        await service(faulty_daemon(parts, Faulty(), reconcilers))
    found = classes_of(parts.policy)[kind]

    assert found["failing"] == [{"what": "service", "why": WHY}]
    assert found["failures"] == 1
