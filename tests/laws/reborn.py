"""States after a checkpoint and its restoration."""

from __future__ import annotations

from typing import Any

from nri_resmgr.app.checkpoint.read import read_checkpoint
from nri_resmgr.app.checkpoint.write import Draft, checkpoint
from nri_resmgr.policy.decision import Policy
from nri_resmgr.policy.records import Restored


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
