"""What holds of a restart of the daemon, however old the checkpoint is."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

from nri_resmgr.checkpoint.encode import Draft
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.values import CpuSet
from tests.laws.histories import FELL_BACK, History
from tests.laws.history_draws import OLDEST

AGES: Final = (0, 1, 2, 3, 5, 8, 12, 20, OLDEST)
_SHUFFLED_AGES: Final = (0, 2, 8)


def check_restarts(history: History, ages: Iterable[int] = AGES) -> None:
    """Check that none moves, whatever a checkpoint lacks, and none is refused."""
    policy, alone = history.policy, history.exclusive()
    for age in ages:
        after = history.restart(age)
        lines = "\n".join((*history.events, f"{age} decisions are lost"))
        # One that fell back has less than it asks for, which a refusal says as well; to
        # as many CPUs as it asks for, it looks like their owner.
        refused = [key for key in after.refused if history.why[key] not in FELL_BACK]
        assert not refused or history.has_lookalike, lines
        assert history.crowded or not history.moved(after.pins, age), lines
        exclusive = policy.exclusive_cpus(after.state)
        assert alone.items() <= exclusive.items(), lines
        each = exclusive.values()
        assert sum(map(len, each)) == len(CpuSet.union(each)), lines
        if age in _SHUFFLED_AGES:
            again = history.restart(age, Random(age))  # noqa: S311 - repeatable
            assert written(policy, again.state) == written(policy, after.state), lines
            assert again == after, lines


def written(policy: ViewedPolicy[Any], state: Any) -> list[str]:
    """Return the records of a state, the order of which decides what comes next."""
    return Draft().lines_of(policy, state)
