"""Files of cgroup v2 that several kinds of classes set."""

from __future__ import annotations

from nri_resmgr.app.classes.unified import with_unified
from nri_resmgr.stub import ContainerAdjustment, ContainerUpdate

FIRST = {"memory.high": "1", "io.max": "8:0 rbps=1"}
SECOND = {"io.max": "8:0 rbps=2", "io.weight": "50"}
BOTH = {**SECOND, **FIRST}


def test_the_first_that_sets_a_file_has_it() -> None:
    sent = ContainerAdjustment().set_cpus("0")

    found = with_unified(with_unified(sent, FIRST), SECOND).resources

    assert (dict(found.unified), found.cpu) == (BOTH, sent.resources.cpu)


def test_the_first_that_sets_a_file_has_it_in_updates_too() -> None:
    sent = ContainerUpdate("c").set_cpus("0")

    found = with_unified(with_unified(sent, FIRST), SECOND).resources

    assert (dict(found.unified), found.cpu) == (BOTH, sent.resources.cpu)


def test_no_files_change_nothing() -> None:
    sent = ContainerAdjustment().set_cpus("0")

    assert with_unified(sent, {}) is sent
