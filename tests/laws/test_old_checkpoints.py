"""However old its checkpoint is, a new process leaves containers where they run.

What these laws found has examples in `tests/laws/test_restart_regressions.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.views import ViewedPolicy
from tests.laws.histories import History
from tests.laws.history_draws import (
    DOCUMENTS,
    OF_ONE_PROCESS,
    OLDEST,
    Events,
    begin,
    go_on,
)
from tests.laws.restarts import check_restarts, written

GREAT_AGES: Final = (21, 34, OLDEST)


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_containers_stay_however_old_the_checkpoint_is(
    kind: str, data: st.DataObject
) -> None:
    history = begin(kind, data, by_partition=data.draw(st.booleans()))
    go_on(history, kind, data)

    check_restarts(history)


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_containers_stay_however_old_the_records_of_the_runtime_are(
    kind: str, data: st.DataObject
) -> None:
    history = begin(kind, data, is_behind=True)
    go_on(history, kind, data, Events(oldest=0))

    check_restarts(history, (0,))


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_containers_stay_when_a_checkpoint_lacks_many_decisions(
    kind: str, data: st.DataObject
) -> None:
    history = begin(kind, data)
    go_on(history, kind, data, OF_ONE_PROCESS)

    check_restarts(history, GREAT_AGES)


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_containers_stay_after_policies_of_all_kinds(
    kind: str, data: st.DataObject
) -> None:
    # What the documents of all of them ask for is there.
    history = begin(kind, data, of="StaticPoolsPolicy")
    events = Events(others=(*DOCUMENTS, "NonePolicy"))
    go_on(history, kind, data, events)

    check_restarts(history)


class Twins(History):
    """A node, and one with the same history that reads its records in other orders."""

    def __init__(self, policy: ViewedPolicy[Any], machines: tuple[str, ...]) -> None:
        super().__init__(policy, machines)
        self.twin = History(policy, machines)

    def create(self, spec: ContainerSpec) -> None:
        """See `History.create`."""
        super().create(spec)
        self.twin.create(spec)

    def resize(self, container: str, amounts: Mapping[str, Any]) -> None:
        """See `History.resize`."""
        super().resize(container, amounts)
        self.twin.resize(container, amounts)

    def stop(self, container: str) -> None:
        """See `History.stop`."""
        super().stop(container)
        self.twin.stop(container)

    def switch(self, policy: ViewedPolicy[Any]) -> None:
        """See `History.switch`."""
        super().switch(policy)
        self.twin.switch(policy)

    def die(self, decisions: int, order: Random | None = None) -> None:
        """See `History.die`."""
        super().die(decisions, order)
        self.twin.die(decisions, Random(len(self.events)))  # noqa: S311 - repeatable


@pytest.mark.parametrize("kind", DOCUMENTS)
@given(data=st.data())
def test_the_order_of_records_changes_no_history(
    kind: str, data: st.DataObject
) -> None:
    node = begin(kind, data)
    twins = Twins(node.policy, node.machines)
    go_on(twins, kind, data)

    lines = "\n".join(twins.events)
    assert twins.twin.events == twins.events, lines
    assert twins.twin.pins == twins.pins, lines
    policy = twins.policy
    assert written(policy, twins.twin.state) == written(policy, twins.state), lines
