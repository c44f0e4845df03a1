"""After a fault, nothing reports that the host is still set as wanted."""

from __future__ import annotations

import pytest

from nri_resmgr.app.background.reconciler import Reconciler
from nri_resmgr.app.host_settings.settings import HostSettings
from nri_resmgr.app.metrics.of_host import series_of_host
from nri_resmgr.app.metrics.text import render
from nri_resmgr.app.observers.policy_in_force import snapshot_of
from nri_resmgr.control.host_settings import host_settings_of
from nri_resmgr.daemon.parts import Reconcilers
from nri_resmgr.daemon.services import host
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Synchronized
from tests.control.daemon_parts import Parts, make_parts
from tests.daemon.faulty import WHY, Faulty, faulty_daemon
from tests.daemon.host_nodes import TREE


def followed(host: Reconciler[HostSettings], parts: Parts) -> str:
    series = series_of_host(parts.policy.policy.host_use(parts.policy.state), host)
    lines = render(series).splitlines()
    return next(
        line for line in lines if line.startswith("nri_resmgr_host_settings_applied")
    )


@pytest.mark.parametrize(
    ("state", "has_begun"),
    [
        pytest.param(None, True, id="in a round"),
        pytest.param(Faulty(), False, id="before the first one"),
    ],
)
async def test_a_fault_is_reported(state: Faulty | None, *, has_begun: bool) -> None:
    reconcilers = Reconcilers()
    parts = make_parts(document=TREE, host=reconcilers.host)
    synchronized = Synchronized((), pods=frozenset())
    reconcilers.host.decided(synchronized, Decision(parts.policy.state, ()))
    with pytest.raises(ZeroDivisionError):
        await host(faulty_daemon(parts, state, reconcilers))
    found = host_settings_of(parts.daemon, snapshot_of(parts.daemon.policy))

    assert (reconcilers.host.applier is not None) is has_begun
    assert found is not None
    assert (found["applied"], found["problem"]) == (False, WHY)
    assert followed(reconcilers.host, parts) == "nri_resmgr_host_settings_applied 0"
