"""States after a checkpoint and its restoration."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from nri_resmgr.checkpoint.decode import read_checkpoint
from nri_resmgr.checkpoint.encode import Draft, checkpoint
from nri_resmgr.policy.decision import Policy
from nri_resmgr.policy.records import Restored


class Checkpoints:
    """The checkpoints of a history, the youngest ones of which are kept."""

    _KEPT: Final = 51

    def __init__(self) -> None:
        self._draft = Draft()
        self._texts: list[str] = []

    @property
    def count(self) -> int:
        """The number of those that are kept."""
        return len(self._texts)

    def note(self, policy: Policy[Any], state: Any) -> None:
        """Write one more; many are never read."""
        lines = self._draft.lines_of(policy, state)
        text = checkpoint(lines, policy.kind, "0", "now")
        self._texts = [*self._texts[1 - self._KEPT :], text]

    def aged(self, decisions: int) -> str:
        """Return the one from before some decisions; the oldest at most."""
        return self._texts[-1 - min(decisions, len(self._texts) - 1)]


_ANY_ORDER: Final = ("members", "rooms")


def shuffled(text: str, order: Random) -> str:
    """Return a checkpoint of the same records, in another order.

    Its tables and their rows, and the lists in rows that stand for sets.
    """
    first, *lines = text.splitlines()
    header, records = json.loads(first), [json.loads(one) for one in lines]
    order.shuffle(records)
    for _, _, data in records:
        for name in _ANY_ORDER if isinstance(data, dict) else ():
            order.shuffle(data.get(name, []))
    body = [f"{json.dumps(one)}\n" for one in records]
    return checkpoint(body, header["policy"], header["version"], header["written"])


def restored(text: str, policy: Policy[Any]) -> Any:
    """Return the state that a new process begins with, as the daemon does."""
    saved = read_checkpoint(text)
    if saved.kind != policy.kind:
        return policy.start()
    return saved.state_for(policy).state


def reborn(policy: Policy[Any], state: Any, draft: Draft) -> Any:
    """Return the state restored from its checkpoint; it must be equal.

    Args:
        policy: The policy of the state.
        state: The state.
        draft: The checkpoint writer of the states before it.
    """
    lines = draft.lines_of(policy, state)
    saved = read_checkpoint(checkpoint(lines, policy.kind, "0", "now"))
    restored = saved.state_for(policy)
    assert restored == Restored(state, {})
    assert Draft().lines_of(policy, restored.state) == lines
    return restored.state
