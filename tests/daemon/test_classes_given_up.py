"""Who asks after a fault is not told that containers still follow their classes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nri_resmgr.app.class_watch import ClassWatch
from nri_resmgr.control.classes import classes_of
from nri_resmgr.daemon.classes import have_blockio_follow, have_rdt_follow
from nri_resmgr.daemon.parts import Daemon
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


@pytest.mark.parametrize(
    ("kind", "service"),
    [
        pytest.param("rdt", have_rdt_follow, id="RDT"),
        pytest.param("blockio", have_blockio_follow, id="block I/O"),
    ],
)
async def test_a_fault_is_told(kind: str, service: Service) -> None:
    parts = make_parts(document=DOCUMENT)
    with pytest.raises(ZeroDivisionError):
        await service(faulty_daemon(parts, Faulty(), classes=ClassWatch()))
    found = classes_of(parts.policy)[kind]

    assert found["failing"] == [{"what": "service", "why": WHY}]
    assert found["failures"] == 1
