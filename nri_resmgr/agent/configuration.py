"""Watches the objects that may configure the node, and chooses one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from nri_resmgr.agent.api import (
    CONFIG_MAPS,
    NODES,
    ApiClient,
    ApiError,
    ApiObject,
    Changed,
    Failing,
    News,
    Removed,
    Resource,
    Synced,
    Target,
    Unreadable,
)
from nri_resmgr.agent.api.errors import Forbidden, KindMissing
from nri_resmgr.agent.choice import (
    CONFIG_MAP_NAMES,
    CUSTOM_RESOURCE_NAMES,
    Choice,
    ConfigObject,
    Naming,
    NotReadable,
    Observation,
    Seen,
    choose,
)
from nri_resmgr.agent.documents import (
    of_config_map,
    of_custom_resource,
    policy_resources,
)
from nri_resmgr.agent.watch_problems import WatchProblems
from nri_resmgr.log import Logger
from nri_resmgr.values import InputError

log = Logger(__name__)

ToDocument: TypeAlias = Callable[[ApiObject], ConfigObject]


class ConfigSource(msgspec.Struct, frozen=True):
    """The kinds of objects in which a cluster has configurations of nodes.

    Attributes:
        resources: The kinds of objects.
        naming: Their names.
        to_document: Returns the document in an object, or raises `InputError`.
        has_status: Whether the objects have a status.
    """

    resources: tuple[Resource, ...]
    naming: Naming
    to_document: ToDocument
    has_status: bool = True


def custom_resources(kinds: Iterable[str] = ()) -> ConfigSource:
    """Return the source of custom resources of some kinds; by default of all."""
    wanted = set(kinds)
    found = tuple(one for one in policy_resources() if not wanted or one.kind in wanted)
    return ConfigSource(found, CUSTOM_RESOURCE_NAMES, of_custom_resource)


CONFIG_MAP_SOURCE: Final = ConfigSource((CONFIG_MAPS,), CONFIG_MAP_NAMES, of_config_map)


class ConfigScope(msgspec.Struct, frozen=True):
    """The objects that may configure one node.

    Attributes:
        node: Name of the node.
        namespace: Of the objects.
        source: Where they are.
        fall_through: Whether a node with a group also has the default.
    """

    node: str
    namespace: str
    source: ConfigSource
    fall_through: bool = False


class ConfigurationWatch:
    """Watches the Node and the objects that may configure it.

    Each object is watched by its name: what other nodes have costs this one nothing.

    Args:
        api: The client.
        scope: The objects that may configure the node.
        changed: Called after each change of `choice`, `node_object` or `problems`.
        note_unusable: Called for each version of an object without a document.

    Attributes:
        node_object: The Node; None before it is read, or where it does not exist.
        is_node_gone: Whether the cluster has none of its name, or none any more.
        problems: What cannot be watched now.
    """

    def __init__(
        self,
        api: ApiClient,
        scope: ConfigScope,
        changed: Callable[[], None],
        note_unusable: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._scope = scope
        self._changed = changed
        self._note_unusable = note_unusable
        self._seen: dict[str, dict[Resource, Observation]] = {}
        self._shared: tuple[str, ...] | None = None  # None: labels are not known yet
        self._watching: dict[str, list[asyncio.Task[None]]] = {}
        self._labels_changed = asyncio.Event()
        self.node_object: ApiObject | None = None
        self.is_node_gone = False
        self.problems = WatchProblems()

    @property
    def own_name(self) -> str:
        """The name of an object of this node alone."""
        return self._scope.source.naming.of_node(self._scope.node)

    @property
    def node_uid(self) -> str:
        """The Node's UID; empty before it is read, or where it does not exist."""
        return self.node_object.uid if self.node_object else ""

    @property
    def choice(self) -> Choice:
        """The object that counts, as far as is known."""
        # Without labels the names below that of the node are not known.
        names = (self.own_name, *(self._shared if self._shared is not None else ("",)))
        seen = {name: tuple(found.values()) for name, found in self._seen.items()}
        return choose(names, seen)

    async def run(self) -> None:
        """Watch until cancelled."""
        self._watching.clear()  # after a failure these have ended
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_node())
            self._follow_names(group)
            while True:
                await self._labels_changed.wait()
                self._labels_changed.clear()
                self._follow_names(group)

    def _follow_names(self, group: asyncio.TaskGroup) -> None:
        wanted = {self.own_name, *(self._shared or ())}
        for name in self._watching.keys() - wanted:
            for task in self._watching.pop(name):
                task.cancel()
            del self._seen[name]
        for name in wanted - self._watching.keys():
            self._begin(group, name)
        self._changed()

    def _begin(self, group: asyncio.TaskGroup, name: str) -> None:
        resources = self._scope.source.resources
        self._seen[name] = dict.fromkeys(resources, Seen.UNKNOWN)
        self._watching[name] = [
            group.create_task(self._watch(one, name)) for one in resources
        ]

    async def _watch_node(self) -> None:
        target = Target(NODES, name=self._scope.node, metadata_only=True)

        def receive(news: News) -> None:
            match news:
                case Changed(found):
                    self.node_object, self.is_node_gone = found, False
                    self._set_labels(found.labels)
                case Removed():
                    self.node_object, self.is_node_gone = None, True
                    log.warning("agent.node-gone", node=self._scope.node)
                case Synced() if self.node_object is None:
                    self.is_node_gone = True
                    if self._shared is None:
                        log.warning("agent.no-node", node=self._scope.node)
                        self._set_labels({})
            self.problems.note(str(target), news)
            self._changed()

        await self._api.watch(target, receive)

    def _set_labels(self, labels: Mapping[str, str]) -> None:
        naming = self._scope.source.naming
        names = tuple(naming.shared(labels, fall_through=self._scope.fall_through))
        if names != self._shared:
            self._shared = names
            self._labels_changed.set()

    async def _watch(self, resource: Resource, name: str) -> None:
        target = Target(resource, self._scope.namespace, name)

        def receive(news: News) -> None:
            seen = self._seen[name]
            seen[resource] = self._observed(seen[resource], news)
            self.problems.note(str(target), news)
            self._changed()

        await self._api.watch(target, receive)

    def _observed(self, before: Observation, news: News) -> Observation:
        match news:
            case Changed(found):
                return self._document_in(found)
            case Unreadable(name, _, error):
                self._note_unusable()
                return NotReadable(f"{name}: {error}")
            case Removed():
                return Seen.ABSENT
            case Synced():
                return Seen.ABSENT if before is Seen.UNKNOWN else before
            case Failing(error) if before is Seen.UNKNOWN:
                return _observed_first(error)
        # An outage, a missing kind or right does not remove what was read before.
        return before

    def _document_in(self, found: ApiObject) -> Observation:
        try:
            return self._scope.source.to_document(found)
        except InputError as error:
            self._note_unusable()
            return NotReadable(f"{found.resource.kind} {found.name}: {error}")


def _observed_first(error: ApiError) -> Observation:
    """Return what an error says of an object that was never read."""
    match error:
        case KindMissing():
            return Seen.ABSENT
        case Forbidden():
            return NotReadable(str(error))
        case _:
            return Seen.UNKNOWN
