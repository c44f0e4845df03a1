"""The files that tell containers what they have, kept in step with decisions."""

from __future__ import annotations

from typing import Any

from nri_resmgr.app.observers.after_reply import after_replies
from nri_resmgr.app.observers.observer import DecisionObserver
from nri_resmgr.app.plugin.engine import Engine
from nri_resmgr.app.published.mounts import ResourceMounts
from nri_resmgr.host.resource_files import ResourceFiles
from nri_resmgr.policy.decision import Decision
from nri_resmgr.policy.events import Created, Event, Synchronized, Updated
from nri_resmgr.stub.model import Container, Mount


class ContainerFiles(DecisionObserver):
    """Writes them; a new container's at once, the others' after the reply.

    Args:
        run_dir: Where they are.
        engine: Knows what containers have.
    """

    def __init__(self, run_dir: str, engine: Engine) -> None:
        self._run_dir = run_dir
        self._engine = engine
        self._opened: Any = None
        self._count = 0  # of those who were present last

    def mount_for(self, container: Container) -> Mount | None:
        """Write a new container's files, and say how they get into it, if they do."""
        if not self._engine.publishes(container.id):
            return None
        found: Mount | None = self._mounts().mount_for(container)
        return found

    def decided(self, event: Event, decision: Decision[Any]) -> None:
        """Write the files of those whose resources have changed."""
        mounts, present = self._mounts(), self._engine.state.ledger.entries
        changed = [update.container for update in decision.updates]
        if isinstance(event, Created):
            mounts.fill(event.spec.id)
        if isinstance(event, Synchronized):
            mounts.find(present.keys())
            changed = list(present)
        elif len(present) != self._count + isinstance(event, Created):
            mounts.keep_only(present.keys())  # somebody has gone
        self._count = len(present)
        if isinstance(event, Updated):
            changed.append(event.spec.id)
        if changed:
            after_replies(mounts.rewritten(changed))

    def _mounts(self) -> Any:
        if self._opened is None:
            files = ResourceFiles(self._run_dir)
            self._opened = ResourceMounts(files, self._engine.resources_of)
        return self._opened
