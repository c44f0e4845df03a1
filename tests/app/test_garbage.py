"""When garbage is collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from nri_resmgr.app.observers.garbage import (
    collect_if_due,
    keep_present,
    prefer_to_collect_between_requests,
    thaw,
)
from nri_resmgr.daemon.observers import DaemonObservers
from nri_resmgr.stub.runtime_info import RuntimeInfo


class Knot:
    """Refers to itself, so that only the collector finds it."""

    def __init__(self) -> None:
        self.self = self


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.collect()
    prefer_to_collect_between_requests()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_no_garbage_is_collected_during_a_request() -> None:
    knot = weakref.ref(Knot())
    kept = [[number] for number in range(5000)]

    assert knot() is not None
    assert len(kept) == 5000


def test_unreachable_objects_are_freed_after_the_request() -> None:
    knot = weakref.ref(Knot())
    kept = [[number] for number in range(5000)]
    collect_if_due()

    assert (knot(), gc.get_count()[0] < len(kept)) == (None, True)


def test_a_few_objects_cause_no_collection() -> None:
    knot = weakref.ref(Knot())
    collect_if_due()

    assert knot() is not None


@pytest.mark.parametrize(
    "generation", [pytest.param(0, id="twice"), pytest.param(1, id="many times")]
)
def test_old_garbage_is_freed_eventually(generation: int) -> None:
    knot = Knot()
    gone = weakref.ref(knot)
    gc.collect(generation)
    del knot
    for _ in range(150):
        kept = [[number] for number in range(1000)]
        collect_if_due()
        kept.clear()

    assert gone() is None


def test_a_synchronized_node_is_not_looked_at_until_the_session_ends() -> None:
    knot = Knot()
    gone = weakref.ref(knot)
    kept = [[number] for number in range(5000)]
    keep_present()
    del knot
    is_looked_at = any(one is kept for one in gc.get_objects())
    gc.collect()
    is_kept = gone() is not None
    thaw()

    assert not is_looked_at
    assert is_kept
    assert gone() is None


def test_the_daemon_collects_between_requests() -> None:
    observers = DaemonObservers(counts=False, traces=False)
    observers.registered(RuntimeInfo())
    knot = Knot()
    gone = weakref.ref(knot)
    observers.synchronized()
    del knot
    gc.collect()
    is_kept = gone() is not None
    observers.ended("end of file")

    assert is_kept
    assert gone() is None
