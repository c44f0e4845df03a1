"""Topology hints of a container: from its mounts, its devices, and the kubelet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from nri_resmgr.app.background.renewal import Renewal
from nri_resmgr.host.hints import DeviceHints, NodeType
from nri_resmgr.host.mounts import MountTable, device_below, devices_in
from nri_resmgr.host.tree import Tree
from nri_resmgr.log import Logger
from nri_resmgr.stub.model import Container, Device, DeviceCgroupRule, Mount
from nri_resmgr.topology import Machine
from nri_resmgr.topology.hint_options import ALL_HINTS, HintOptions, HintSource
from nri_resmgr.topology.hints import Hint, complete_hints, gives_hint
from nri_resmgr.values import HostError

log = Logger(__name__)

# Python 3.11 takes 0.2 µs to read a member off its enumeration.
_MOUNTS, _DEVICES = HintSource.MOUNTS, HintSource.DEVICES
_POD_RESOURCES = HintSource.POD_RESOURCES


class ContainerHints:
    """Finds the NUMA nodes and CPUs close to a container's devices and mounts.

    It reads sysfs and the kernel's table of mounts, never the containers' own files,
    so a slow file system delays no request.

    Before a kubelet has a pod's sandbox made, it mounts the pod's volumes and allocates
    its devices. So what has changed is read after the reply about the sandbox, in a
    thread, and the requests about its containers read nothing; but for a device that no
    container has had of late.

    Args:
        tree: The host.
    """

    def __init__(self, tree: Tree) -> None:
        self._devices = DeviceHints(tree)
        self._mounts = MountTable(tree)
        # The thread has one of its own: the kernel reports each change once per file.
        self._mounts_ahead = MountTable(tree)
        # Looks are counted. The table of the last one may come from a request.
        self._asked = 1
        self._done = 0
        self._last: tuple[int, Mapping[str, str]] = (0, {})
        self._ahead = Renewal(self._look, interval=0.0)

    def pods_come(self) -> None:
        """Read again what has changed: in a thread, or before the next hints."""
        self._asked += 1
        self._ahead.begin()

    def of(
        self,
        container: Container,
        machine: Machine,
        options: HintOptions = ALL_HINTS,
        *,
        pod_resources: tuple[Hint, ...] = (),
        strict: bool = False,
    ) -> tuple[Hint, ...]:
        """Find the hints of a container, one per device or mount.

        Args:
            container: Only writable mounts count, and only devices with a rule of
                their own that allows writing.
            machine: The model of the host, which completes the hints from sysfs.
            options: Which hints count.
            pod_resources: The kubelet's hints for the pod's devices.
            strict: Whether an unreadable place is an error, not just a line in the
                log.

        Raises:
            HostError: A place cannot be read, and *strict* is set.
        """
        found = list(options.given)
        if _POD_RESOURCES in options.sources:
            found += pod_resources
        seen: set[str] = set()  # the volumes of a pod tend to be on one disk
        for path, look_up in self._lookups(container, options):
            try:
                new = [one for one in look_up() if one.provider not in seen]
                found += [one for one in new if options.admits(one.provider)]
                seen.update(one.provider for one in new)
            except HostError as error:
                if strict:
                    raise
                log.warning("hints.unreadable", path=path, why=str(error))
        return complete_hints(found, machine) if found else ()

    def _lookups(
        self, container: Container, options: HintOptions
    ) -> Iterator[tuple[str, Callable[[], tuple[Hint, ...]]]]:
        if _MOUNTS in options.sources:
            for path in [one.source for one in container.mounts if may_give_hint(one)]:
                if options.admits(path):
                    yield path, partial(self._of_path, path)
        linux = container.linux
        if linux and linux.devices and _DEVICES in options.sources:
            rules = container.resources.devices
            for device in linux.devices:
                if _is_writable(device, rules) and options.admits(device.path):
                    yield device.path, partial(self._of_device, device)

    def _look(self) -> None:
        """Read ahead; in a thread, for which no request waits: it may hang."""
        while (asked := self._asked) > self._done:
            try:
                mounted = self._mounts_ahead.current()
            except HostError:
                return  # it is reported where a path is looked up
            self._last = asked, mounted
            self._devices.read_ahead(devices_in(mounted))
            self._done = asked

    def _of_path(self, path: str) -> tuple[Hint, ...]:
        asked, mounted = self._last
        if asked < self._asked:
            mounted = self._mounts.current()
            self._last = self._asked, mounted
        number = device_below(mounted, path)
        return () if number is None else self._of_number(NodeType.BLOCK, *number)

    def _of_device(self, device: Device) -> tuple[Hint, ...]:
        kind = NodeType.BLOCK if device.type == "b" else NodeType.CHAR
        return self._of_number(kind, device.major, device.minor)

    def _of_number(self, kind: NodeType, major: int, minor: int) -> tuple[Hint, ...]:
        is_due = self._done < self._asked
        return self._devices.of(kind, major, minor, is_due=is_due)


def may_give_hint(mount: Mount) -> bool:
    """Return whether a mount is a writable volume, which may be on a local disk."""
    # Cheap checks first: most mounts are kernel file systems or read-only.
    return (
        (path := mount.source)[:1] == "/"
        and "ro" not in mount.options
        and gives_hint(path, mount.destination, read_only=False)
    )


def _is_writable(device: Device, rules: tuple[DeviceCgroupRule, ...]) -> bool:
    """Return whether the last rule for exactly this device allows writing.

    Rules for all devices do not count: a privileged container uses few of them.
    """
    for rule in reversed(rules):
        if (rule.type, rule.major) == (device.type, device.major) and rule.minor in (
            None,
            device.minor,
        ):
            return rule.allow and "w" in rule.access
    return False
