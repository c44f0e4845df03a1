"""Stories of shipped plugins: what annotations do to a container, at any NRI level.

A file of ``cases`` has the stories of the plugin that it is named after. All of them
are played with one process of the plugin, each with a container of its own:

* ``it``: what the story says; ``annotations`` of the pod, ``container``: fields of the
  container, beside its name ``app``;
* ``adjusts``: the adjustment that the runtime reads; ``becomes``: fields that the
  container has afterwards; neither of them: no adjustment;
* ``since``: the first NRI level with the effect; below it there is none;
* ``others``: what other plugins adjust, by ``NN-name``; all are connected all the time;
* ``refused``: the end of the error that the creation fails with;
* ``warns``: an event of the plugin's log.

Before them a file may have ``since``, the first level that the plugin works with,
``flags`` of it, and ``files`` that it reads, in a folder that is ``FOLDER`` in both;
``machine``, whose files are in its folder ``host``; ``warns_below``, the level below
which the SDK warns of a mark that only other plugins need. Fields are those of the
schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from nri_proto import NriLevel, nri_pb2
from nri_resmgr.host.machine.sysfs_writer import sysfs_files, write_tree
from nri_resmgr.stub import Container, ContainerAdjustment, Pod
from nri_resmgr.stub.convert import from_message, to_message
from nri_resmgr.testing import CreateResult, Runtime, RuntimeRefusal, running_plugin
from nri_resmgr.topology.synthetic import parse_spec
from tests.fast_yaml import read_yaml
from tests.plugins.programs import PLUGINS, running

CASES: Final = Path(__file__).parent / "cases"

# All that the test runtime can be; nri_proto.levels has the runtimes with each.
LEVELS: Final = tuple(
    NriLevel(0, *parts)
    for parts in (
        *((3,), (4,), (5,), (6,), (6, 1), (7,), (8,), (9,), (9, 1)),
        *((10,), (11,), (12,), (12, 1), (13,)),
    )
)

# Logged by the SDK for what the runtime does not read.
TOO_NEW: Final = "adjustment.too-new"

_WARNINGS: Final = ("[warning", "[error")

# What the runtime adds to every container.
_ADDED: Final = ("id", "pod_sandbox_id", "state", "created_at", "started_at")


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One story; the module says what its fields mean."""

    it: str
    annotations: Mapping[str, str] = {}
    container: Mapping[str, Any] = {}
    others: Mapping[str, Mapping[str, Any]] = {}
    adjusts: Mapping[str, Any] | None = None
    becomes: Mapping[str, Any] | None = None
    since: str = "0.3"
    refused: str = ""
    warns: str = ""

    def has_effect(self, level: NriLevel) -> bool:
        """Return whether a runtime of that level can do it."""
        return level >= parsed(self.since)

    def expected(self, level: NriLevel) -> dict[str, Any]:
        """Return what has to come of it."""
        has_effect = self.has_effect(level)
        if self.refused and has_effect:
            return {"refused": self.refused}
        found: dict[str, Any] = {}
        if self.adjusts is not None or self.becomes is None:
            changes = (self.adjusts if has_effect else None) or {}
            adjustment = ParseDict(dict(changes), nri_pb2.ContainerAdjustment())
            found["adjusts"] = _fields(adjustment)
        if self.becomes is not None:
            found["becomes"] = _fields(
                self._message(self.becomes if has_effect else {})
            )
        return found

    def outcome(self, created: CreateResult) -> dict[str, Any]:
        """Return what came of it, as far as the story says something about it."""
        found: dict[str, Any] = {}
        if self.adjusts is not None or self.becomes is None:
            found["adjusts"] = _fields(to_message(created.adjustment))
        if self.becomes is not None:
            found["becomes"] = _fields(to_message(created.container))
        return found

    async def play(self, runtime: Runtime) -> dict[str, Any]:
        """Create the container, and return what came of it."""
        pod = await runtime.run_pod(
            Pod(name="web", namespace="shop", annotations=self.annotations)
        )
        container = from_message(self._message({}))
        try:
            created = await runtime.create_container(pod.id, container)
        except RuntimeRefusal as refusal:
            text = str(refusal)
            is_quoted = self.refused and text.endswith(self.refused)
            return {"refused": self.refused if is_quoted else text}
        return self.outcome(created)

    def _message(self, changes: Mapping[str, Any]) -> nri_pb2.Container:
        fields = {"name": "app", **self.container, **changes}
        return ParseDict(fields, nri_pb2.Container())


class Other:
    """Another plugin, which adjusts what the present story says."""

    def __init__(self) -> None:
        self._adjustment = ContainerAdjustment()

    def adjusts(self, changes: Mapping[str, Any]) -> None:
        """Adjust the next container in this way."""
        message = ParseDict(dict(changes), nri_pb2.ContainerAdjustment())
        self._adjustment = from_message(message)

    def create_container(self, _pod: Pod, _container: Container) -> ContainerAdjustment:
        """Return the adjustment of the story."""
        return self._adjustment


class Stories(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of stories."""

    stories: tuple[Story, ...]
    since: str = "0.3"
    flags: tuple[str, ...] = ()
    files: Mapping[str, str] = {}
    machine: str = ""
    warns_below: str = "0.3"

    @classmethod
    def of(cls, plugin: str) -> Stories:
        """Read the stories of a plugin."""
        return msgspec.convert(read_yaml(CASES / f"{plugin}.yaml"), cls)

    @property
    def levels(self) -> tuple[NriLevel, ...]:
        """All levels that the plugin works with."""
        return tuple(level for level in LEVELS if level >= parsed(self.since))

    def warnings(self, level: NriLevel) -> set[str]:
        """Return the events that have to be in the log as warnings."""
        found = {story.warns for story in self.stories if story.warns}
        effects = [story for story in self.stories if not story.refused]
        is_too_new = any(not story.has_effect(level) for story in effects)
        is_warned = is_too_new or level < parsed(self.warns_below)
        return found | ({TOO_NEW} if is_warned else set())

    async def play(
        self, plugin: str, level: NriLevel, folder: Path
    ) -> tuple[dict[str, Any], set[str]]:
        """Play all stories; return what came of each, and the warnings of the log."""
        flags = self._write_files(folder)
        others = {name: Other() for story in self.stories for name in story.others}
        log = folder / "log"
        outcomes = {}
        async with Runtime(folder, level) as runtime, AsyncExitStack() as stack:
            for name, other in others.items():
                await stack.enter_async_context(running_plugin(runtime, other, name))
            identity = ("--socket", str(runtime.socket_path), "--index", "10")
            async with running(PLUGINS / plugin, *identity, *flags, log=log):
                await runtime.synchronized(f"10-{plugin}")
                for story in self.stories:
                    for name, other in others.items():
                        other.adjusts(story.others.get(name, {}))
                    outcomes[story.it] = await story.play(runtime)
        return outcomes, set(_warnings(log.read_text().splitlines()))

    def _write_files(self, folder: Path) -> list[str]:
        """Write the files; return the flags."""
        if self.machine:
            write_tree(sysfs_files(parse_spec(self.machine)), folder / "host")
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text.replace("FOLDER", str(folder)))
        return [flag.replace("FOLDER", str(folder)) for flag in self.flags]


def parsed(level: str) -> NriLevel:
    """Return the level of a text."""
    found = NriLevel.parse(level)
    assert found is not None
    return found


def _fields(message: Message) -> dict[str, Any]:
    found = MessageToDict(message, preserving_proto_field_name=True)
    for name in _ADDED:
        found.pop(name, None)
    linux = found.get("linux", {})
    # Absent, or there and empty: what a runtime writes differs.
    for part, name in ((linux, "resources"), (found, "linux")):
        if not part.get(name):
            part.pop(name, None)
    return found


def _warnings(lines: Iterable[str]) -> Iterable[str]:
    """Return the events of lines that are warnings or errors."""
    for line in lines:
        _, _, rest = line.partition(" ")
        if rest.startswith(_WARNINGS):
            # Refusals are logged as well; the stories have their sentences.
            event = rest.partition("]")[2].split()[0]
            if event != "handler.failed":
                yield event
