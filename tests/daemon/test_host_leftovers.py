"""The daemon knows by which files a process before it left the host changed."""

from __future__ import annotations

from nri_resmgr.daemon.targets import HOST_LEFTOVERS
from nri_resmgr.host import irqbalance
from nri_resmgr.host.knobs import journal as knob_journal
from nri_resmgr.host.speed_select import journal as sst_journal


def test_the_journals_of_all_host_settings_are_listed() -> None:
    # Named twice, so that a daemon that changes nothing imports none of them.
    kept = (knob_journal.NAME, sst_journal.NAME, irqbalance.MARK)

    assert kept == HOST_LEFTOVERS
