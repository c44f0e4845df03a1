"""The adjustment of a container being created."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final, Self

import msgspec

from nri_proto import NriLevel
from nri_resmgr.stub.fields import level_of
from nri_resmgr.stub.linux_setters import LinuxSetters
from nri_resmgr.stub.model import (
    CdiDevice,
    Hooks,
    KeyValue,
    LinuxContainerAdjustment,
    LinuxResources,
    Mount,
    Rlimit,
)
from nri_resmgr.stub.model.contents import EMPTY, texts
from nri_resmgr.stub.reply_errors import EmptyText, InvalidKey
from nri_resmgr.stub.set_once import mark, plain_key, with_entry, with_field, with_item

_HOOK_KINDS: Final = Hooks.__struct_fields__


class ContainerAdjustment(LinuxSetters, frozen=True):
    """What changes in a container while it is created; methods return a new value.

    A field, or a key of one, may be set by one plugin alone, else creation fails:
    ``set_`` claims it, ``remove_`` marks it as removed, which also takes it from an
    earlier plugin, ``replace_`` does both. Labels cannot be adjusted.

    Raises:
        DuplicateKey: A method sets or marks what this adjustment has already.
        BadKey: A key is empty or begins with "-".

    >>> ContainerAdjustment().set_env("A", "1").set_cpus("0-3").env
    (KeyValue(key='A', value='1'),)
    """

    annotations: Mapping[str, str] = EMPTY
    mounts: tuple[Mount, ...] = ()
    env: tuple[KeyValue, ...] = ()
    hooks: Hooks | None = None
    linux: LinuxContainerAdjustment | None = None
    rlimits: tuple[Rlimit, ...] = ()
    cdi_devices: tuple[CdiDevice, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def resources(self) -> LinuxResources:
        """The Linux resources to set, all absent where there are none."""
        return self._linux().resources or LinuxResources()

    @property
    def needs_level(self) -> NriLevel:
        """The first NRI level whose runtimes read all that is set."""
        return level_of(self)

    def set_annotation(self, key: str, value: str) -> Self:
        """Set an annotation of the OCI spec."""
        return self._add_annotation(plain_key("annotations", key), value)

    def remove_annotation(self, key: str) -> Self:
        """Remove an annotation."""
        return self._add_annotation(mark("annotations", key), "")

    def replace_annotation(self, key: str, value: str) -> Self:
        """Set an annotation that an earlier plugin may have set."""
        return self.remove_annotation(key).set_annotation(key, value)

    def set_env(self, name: str, value: str) -> Self:
        """Set an environment variable; "" is the practical way to remove one."""
        return self._add_env(plain_key("env", name), value)

    def remove_env(self, name: str) -> Self:
        """Mark a variable as removed: no runtime does it, earlier plugins let go."""
        return self._add_env(mark("env", name), "")

    def replace_env(self, name: str, value: str) -> Self:
        """Set a variable that an earlier plugin may have set."""
        return self.remove_env(name).set_env(name, value)

    def set_mount(self, mount: Mount) -> Self:
        """Add a mount, or replace the one of the same destination."""
        plain_key("mounts", mount.destination)
        return self._add_mount(mount)

    def remove_mount(self, destination: str) -> Self:
        """Remove a mount; runtimes before NRI 0.7 do not."""
        return self._add_mount(Mount(mark("mounts", destination)))

    def replace_mount(self, mount: Mount) -> Self:
        """Set a mount that an earlier plugin may have set."""
        return self.remove_mount(mount.destination).set_mount(mount)

    def set_args(self, args: Iterable[str]) -> Self:
        """Set the whole command line, which must not be empty."""
        return self._set_args(_command_line(args))

    def replace_args(self, args: Iterable[str]) -> Self:
        """Set a command line that an earlier plugin may have set."""
        # An empty first element is the mark; the runtime cuts it off.
        return self._set_args(("", *_command_line(args)))

    def add_hooks(self, hooks: Hooks) -> Self:
        """Append OCI hooks; hooks accumulate and never conflict."""
        present = self.hooks or Hooks()
        kinds = {
            kind: (*getattr(present, kind), *getattr(hooks, kind))
            for kind in _HOOK_KINDS
        }
        return msgspec.structs.replace(self, hooks=Hooks(**kinds))

    def set_rlimit(self, rlimit: Rlimit) -> Self:
        """Add a POSIX resource limit; it does not replace one of the same type."""
        plain_key("rlimits", rlimit.type)
        return with_item(self, "rlimits", rlimit, attrgetter("type"), "rlimits")

    def add_cdi_device(self, name: str) -> Self:
        """Inject a device by its CDI name."""
        device = CdiDevice(plain_key("cdi_devices", name))
        key = attrgetter("name")
        return with_item(self, "cdi_devices", device, key, "cdi_devices")

    def _add_annotation(self, key: str, value: str) -> Self:
        return with_entry(self, "annotations", (key, value), "annotations")

    def _add_env(self, key: str, value: str) -> Self:
        return with_item(self, "env", KeyValue(key, value), attrgetter("key"), "env")

    def _add_mount(self, mount: Mount) -> Self:
        key = attrgetter("destination")
        return with_item(self, "mounts", mount, key, "mounts")

    def _set_args(self, args: tuple[str, ...]) -> Self:
        return with_field(self, "args", args, "args")

    def _linux(self) -> LinuxContainerAdjustment:
        return self.linux or LinuxContainerAdjustment()

    def _with_linux(self, linux: LinuxContainerAdjustment) -> Self:
        return msgspec.structs.replace(self, linux=linux)

    def _resources(self) -> LinuxResources:
        return self.resources

    def _with_resources(self, resources: LinuxResources) -> Self:
        return self._with_linux(
            msgspec.structs.replace(self._linux(), resources=resources)
        )


def _command_line(args: Iterable[str]) -> tuple[str, ...]:
    words = texts(args)
    if not words:
        raise EmptyText("args")
    if not words[0]:
        raise InvalidKey("args", words[0])
    return words
