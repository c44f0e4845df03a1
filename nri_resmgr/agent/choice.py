"""Choice of the object that configures a node, as in nri-plugins and CRI-RM.

The object of the node counts if there is one; otherwise that of its group if the node
has a group label, and only that; otherwise the default one. Pure: the objects that were
seen in, the choice out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, TypeAlias

import msgspec


class Naming(msgspec.Struct, frozen=True):
    """Names of the objects of one source.

    Attributes:
        prefix: Before the level in each name.
        group_labels: Labels of a node whose value is its group; the first one that
            the node has counts.
    """

    prefix: str
    group_labels: tuple[str, ...]

    def of_node(self, node: str) -> str:
        """Return the name of the object of one node."""
        return f"{self.prefix}node.{node}"

    def shared(self, labels: Mapping[str, str], *, fall_through: bool) -> list[str]:
        """Return the names that the node shares with others, most specific first.

        Args:
            labels: Of the node.
            fall_through: Whether a node with a group also has the default.
        """
        default = f"{self.prefix}default"
        groups = (labels[label] for label in self.group_labels if labels.get(label))
        if (group := next(groups, "")) == "":
            return [default]
        own = f"{self.prefix}group.{group}"
        return [own, default] if fall_through else [own]


CUSTOM_RESOURCE_NAMES: Final = Naming(
    "",  # The second and the third label are deprecated in nri-plugins, and still read.
    ("config.nri/group", "group.config.nri", "resource-policy.nri.io/group"),
)
"""Names of nri-plugins' custom resources."""

CONFIG_MAP_NAMES: Final = Naming(
    "cri-resmgr-config.",
    ("cri-resource-manager.intel.com/group", *CUSTOM_RESOURCE_NAMES.group_labels),
)
"""Names of CRI Resource Manager's ConfigMaps."""


class Seen(Enum):
    """An object that does not exist, or that has not been read yet."""

    ABSENT = "absent"
    UNKNOWN = "unknown"


class NotReadable(msgspec.Struct, frozen=True):
    """An object that the API server does not let the agent read.

    Attributes:
        why: A sentence that says who can act.
    """

    why: str


class ConfigObject(msgspec.Struct, frozen=True):
    """An object that can configure a node.

    Attributes:
        kind: As in its manifest.
        namespace: Its namespace.
        name: Its name.
        uid: Its UID.
        generation: Counts changes of its spec; 0 for objects without one.
        resource_version: Its version.
        text: The document in it, YAML or JSON.
        reported_by: The number of nodes that had an entry in its status when its
            generation was first seen.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    resource_version: str
    text: str
    reported_by: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


Observation: TypeAlias = ConfigObject | NotReadable | Seen


class Chosen(msgspec.Struct, frozen=True):
    """The object that counts.

    Attributes:
        config: The object.
    """

    config: ConfigObject


class Nothing(msgspec.Struct, frozen=True):
    """No object applies to the node.

    Attributes:
        names: The names that were looked for.
    """

    names: tuple[str, ...]


class Waiting(msgspec.Struct, frozen=True):
    """It is not known yet which object counts.

    Attributes:
        why: The reason, where an object cannot be read; empty before the first answer.
    """

    why: str = ""


class Ambiguous(msgspec.Struct, frozen=True):
    """Objects of several kinds have the name that counts.

    Attributes:
        configs: These objects.
    """

    configs: tuple[ConfigObject, ...]

    def __str__(self) -> str:
        names = " and ".join(str(one) for one in self.configs)
        return f"{names} both apply to this node: delete all but one of them"


Choice: TypeAlias = Chosen | Nothing | Waiting | Ambiguous


def choose(names: Iterable[str], seen: Mapping[str, Iterable[Observation]]) -> Choice:
    """Choose the object that configures a node.

    Args:
        names: The names that apply to the node, most specific first.
        seen: By name: what was seen of the object of each kind.
    """
    looked_for = []
    for name in names:
        looked_for.append(name)
        observations = tuple(seen.get(name, (Seen.UNKNOWN,)))
        found = tuple(one for one in observations if isinstance(one, ConfigObject))
        if Seen.UNKNOWN in observations:
            # Also beside an object that was found: another kind may have one as well.
            return Waiting()
        if len(found) > 1:
            return Ambiguous(found)
        if found:
            return Chosen(found[0])
        if why := next(_reasons(observations), ""):
            return Waiting(why)
    return Nothing(tuple(looked_for))


def _reasons(observations: Iterable[Observation]) -> Iterator[str]:
    return (one.why for one in observations if isinstance(one, NotReadable))
