"""The parts of one kind of policy."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import msgspec

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.kinds import ConfigKind, find_kind
from nri_resmgr.config.policy_config import PolicyConfig
from nri_resmgr.host.tree import Tree
from nri_resmgr.policy.records import Records, StateRecords
from nri_resmgr.policy.views import ViewedPolicy
from nri_resmgr.topology import Machine

ConfigT = TypeVar("ConfigT", bound=PolicyConfig)


class PolicyKind(ConfigKind[ConfigT], Generic[ConfigT]):
    """A kind of policy: reader of its configuration, builder, and checkpoint form.

    Entry points name objects of this class. Their modules are imported on the start
    path of the nodes that use them.

    Attributes:
        name: The ``kind`` of the configuration document, and the entry point's name.
        state: The class of the policy's states, for the default of `records`.
    """

    state: type[msgspec.Struct]

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
        return StateRecords(self.state)


def kind_named(name: str, path: str = "$.kind") -> PolicyKind[Any]:
    """Return the kind of a policy or configuration.

    Raises:
        BadSetting: There is no such kind, or it cannot be loaded.
    """
    found = find_kind(name, path)
    # The entry point of another distribution may name any object.
    if not isinstance(found, PolicyKind):
        raise BadSetting(path, f"{name} is not a PolicyKind")
    return found
