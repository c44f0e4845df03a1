"""Restores the checkpoint of an earlier process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from nri_resmgr.app.configuration.acceptance import SwitchForbidden
from nri_resmgr.app.configuration.status import DocumentSource
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.checkpoint.decode import (
    BadCheckpoint,
    Checkpoint,
    NewerCheckpoint,
    read_checkpoint,
)
from nri_resmgr.checkpoint.encode import CHECKPOINT_NAME
from nri_resmgr.host.cgroups.containers import CgroupReference
from nri_resmgr.host.state_dir import StateDir, StateInUse, StateUnusable
from nri_resmgr.log import Logger
from nri_resmgr.policy.decision import Policy
from nri_resmgr.policy.ledger import KnowsContainers
from nri_resmgr.policy.records import BadRecord
from nri_resmgr.values import HostError
from nri_resmgr.values.documents import BadValue, from_plain

log = Logger(__name__)


class _Cgroup(msgspec.Struct, frozen=True):
    """The fields of a container's record that lead to its cgroup."""

    cgroup: str = ""
    pid: int = 0


class CheckpointRestore:
    """Restores the state of an earlier process, once the policy is known.

    An invalid checkpoint is set aside, and the state is rebuilt from the running
    containers.

    Attributes:
        kind: The kind of the checkpoint's policy; empty without a checkpoint.

    Args:
        state: The directory, locked by this process.
        may_switch: Whether another policy may follow.
    """

    def __init__(self, state: StateDir, *, may_switch: bool) -> None:
        self._state = state
        self._may_switch = may_switch
        self._saved = self._read()
        self.kind = self._saved.kind if self._saved else ""

    def __call__(self, policy: Policy[KnowsContainers]) -> KnowsContainers | None:
        """Return the state for *policy*; None where the checkpoint has none.

        Raises:
            SwitchForbidden: It is another policy's, and the operator forbids to switch.
        """
        self.check(policy.kind)
        saved = self._saved
        if saved is None:
            return None
        if saved.kind != policy.kind:
            log.warning(
                "state.of-other-policy", saved_kind=saved.kind, kind=policy.kind
            )
            return None
        try:
            restored = saved.state_for(policy)
        except BadRecord as error:
            self._set_aside(error)
            return None
        for what, why in restored.dropped.items():
            log.warning("state.dropped", record=str(what), why=why)
        containers = len(restored.state.ledger)
        log.info(
            "state.restored",
            containers=containers,
            written=saved.written,
            version=saved.version,
        )
        return restored.state

    def cgroups(self) -> Iterator[CgroupReference]:
        """Yield the cgroups of the checkpoint's containers, without invalid records."""
        rows = self._saved.rows.get("container", {}) if self._saved else {}
        for key, row in rows.items():
            with suppress(BadValue):
                one = from_plain(_Cgroup, row)
                yield CgroupReference(from_plain(str, key), one.cgroup, one.pid)

    def check(self, kind: str) -> None:
        """Check that a policy may follow the checkpoint's.

        Raises:
            SwitchForbidden: It may not.
        """
        if self.kind and self.kind != kind and not self._may_switch:
            raise SwitchForbidden(kind, self.kind)

    def _read(self) -> Checkpoint | None:
        try:
            text = self._state.read(CHECKPOINT_NAME)
            return None if text is None else read_checkpoint(text)
        except (StateInUse, StateUnusable) as error:
            log.error("state.unreadable", why=str(error))
        except (BadCheckpoint, NewerCheckpoint) as error:
            self._set_aside(error)
        return None

    def _set_aside(self, error: Exception) -> None:
        try:
            path = self._state.set_aside(CHECKPOINT_NAME)
        except StateUnusable as failure:
            log.error("state.ignored", why=str(error), not_moved=str(failure))
        else:
            log.error("state.set-aside", why=str(error), moved_to=path)


def restore_checkpoint(
    state: StateDir, policy: ResourcePolicy, *, may_switch: bool
) -> None:
    """Have a policy restore the checkpoint of an earlier process.

    Raises:
        SwitchForbidden: The operator's file is for another policy than the
            checkpoint's, and the operator forbids to switch.
    """
    restore = CheckpointRestore(state, may_switch=may_switch)
    # Other documents may still be replaced by the runtime's at Configure.
    if policy.configuration.document.source is DocumentSource.FILE:
        restore.check(policy.config.kind)
    policy.configuration.set_placing_kind(restore.kind)
    policy.engine.restore_from(restore)
    policy.delivery.look(restore.cgroups())


def saved_kind(state: StateDir) -> str:
    """Return the kind of the policy that wrote the checkpoint; empty if unknown.

    Nothing is reported or set aside: `restore_checkpoint` does that.
    """
    try:
        text = state.read(CHECKPOINT_NAME)
        return read_checkpoint(text).kind if text else ""
    except (HostError, BadCheckpoint, NewerCheckpoint):
        return ""
