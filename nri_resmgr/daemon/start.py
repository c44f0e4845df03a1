"""What is known before the runtime hears of the daemon."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

import attrs

from nri_resmgr.daemon.memory_kinds import MemoryKinds
from nri_resmgr.daemon.watch import Watch
from nri_resmgr.host.state_dir import StateDir
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub.transport import SOCKET_VARIABLE
from nri_resmgr.topology import Machine

if TYPE_CHECKING:  # late, as below
    from nri_resmgr.app.reconcilers import Reconcilers


def _was_launched() -> bool:
    return SOCKET_VARIABLE in os.environ  # until the stub takes it out


@attrs.define(eq=False, repr=False)
class Start:
    """The parts that come first.

    Attributes:
        options: The command line.
        tree: The host.
        kinds: What its memory is made of, where the operator says so.
        machine: The host's, as it was at the start.
        state: The state directory; None where nothing is kept.
        watch: Who is told of sessions and decisions.
        launched: Whether the runtime started us.
        recorder: The `Recorder` of ``--record``; None without.
        keeper: The `Keeper` that writes the state; None until the policy is built,
            and where nothing is kept.
        reconcilers: Of host settings, RDT groups and block I/O files; None until the
            policy is built.
    """

    options: argparse.Namespace
    tree: HostTree
    kinds: MemoryKinds
    machine: Machine
    state: StateDir | None
    watch: Watch
    launched: bool = attrs.field(factory=_was_launched)
    recorder: Any = attrs.field(default=None, init=False)
    keeper: Any = attrs.field(default=None, init=False)
    reconcilers: Reconcilers | None = attrs.field(default=None, init=False)
    _documents: Any = attrs.field(default=None, init=False)
    _configuration: Any = attrs.field(default=None, init=False)

    @property
    def recorders(self) -> tuple[Any, ...]:
        """The recorder, if there is one."""
        return () if self.recorder is None else (self.recorder,)

    @property
    def documents(self) -> Any:
        """The `Documents`; none is read before it is asked for.

        Raises:
            TwoConfigFiles: The operator named two.
        """
        if self._documents is None:
            from nri_resmgr.daemon.documents import Documents  # late, as below

            self._documents = Documents(self.options, self.state)
        return self._documents

    def judge(self) -> None:
        """Find out whether the file that the operator named can be used.

        What decides is built later, and once more; most of what that takes is there
        by then.

        Raises:
            InputError: It counts, and is wrong.
        """
        from nri_resmgr.app.build import check_fit  # late, as below

        self.documents.first(lambda config: check_fit(config, self.machine, self.tree))

    def configuration(self) -> Any:
        """Return the `DaemonConfiguration`, and build it, and the policy, if need be.

        Raises:
            InputError: A file that the operator named, and that counts, is wrong.
        """
        if self._configuration is None:
            # Late: a runtime that launches us tells its document after we
            # registered, and need not wait for the third of our start that is here.
            from nri_resmgr.daemon.build import build

            self._configuration = build(self)
        return self._configuration
