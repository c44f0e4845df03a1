"""The parts of one kind of policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import Tree
from nri_resmgr.topology import Machine

if TYPE_CHECKING:  # the agent and the webhook read documents, and have no policies
    from nri_resmgr.policy.records import Records
    from nri_resmgr.policy.views import ViewedPolicy

ConfigT = TypeVar("ConfigT", bound=PolicyConfig)


class PolicyKind(ABC, Generic[ConfigT]):
    """A kind of policy: reader of its configuration, builder, and checkpoint form.

    Entry points name objects of this class. Their modules are imported on the start
    path of the nodes that use them.

    Attributes:
        name: The ``kind`` of the configuration document, and the entry point's name.
        state: The class of the policy's states, for the default of `records`.
    """

    name: str
    state: type[msgspec.Struct]

    @abstractmethod
    def read(self, top: Table) -> ConfigT:
        """Read the ``spec`` of a document whose other keys are validated already.

        Raises:
            BadSetting: The first error in it.
        """

    @abstractmethod
    def build(
        self, config: ConfigT, machine: Machine, tree: Tree | None
    ) -> ViewedPolicy[Any]:
        """Build a policy.

        Args:
            config: As `read` returned it.
            machine: The machine whose CPUs and memory the policy allocates.
            tree: The host, whose cgroups a configuration may name; None where only
                the model of the machine is known.

        Raises:
            BadSetting: The configuration does not fit the machine.
        """

    def records(self) -> Records:
        """Return the checkpoint form, which converts states to records and back.

        By default each field of `state` is a table, or a row where it is no mapping.
        """
        # Late: see the imports of types.
        from nri_resmgr.policy.records import StateRecords

        return StateRecords(self.state)
