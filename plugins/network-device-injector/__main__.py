"""Moves network devices of the host into pods by annotations of them, and back."""

from __future__ import annotations

import re
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface
from typing import Annotated, Final

import msgspec
import structlog

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.host.links import LinkNotMoved, lend, take_back
from nri_resmgr.sdk.conversion import InvalidField, convert
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    InputError,
    Pod,
    RemovePodSandboxHandler,
    RequestRejected,
    RunPodSandboxHandler,
    StopPodSandboxHandler,
    serve,
)
from nri_resmgr.values.shorten import shortened

log = structlog.get_logger(__name__)

# In each scope the first one counts. The second one is what containerd/nri's plugin
# reads, whose README has the first one; the third one is deprecated there.
KEYS: Final = (
    "netdevices.noderesource.dev",
    "netdevice.noderesource.dev",
    "netdevices.nri.containerd.io",
)
SCOPES: Final = ("/pod", "")

# Source: dev_valid_name() of Linux, for which % stands for a number.
NAME: Final = re.compile(r"(?!\.{1,2}$)[!-$&-.0-9;-~]{1,15}")

SHOWN: Final = 80  # characters of a wrong text


class Device(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the annotation."""

    name: str
    new_name: str = ""
    address: str = ""
    prefix: Annotated[int, msgspec.Meta(ge=0, le=128)] = 0
    mtu: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0

    def __post_init__(self) -> None:
        for field, name in (("name", self.name), ("new_name", self.inside)):
            if not NAME.fullmatch(name):
                found = shortened(name, SHOWN)
                raise InvalidField(field, f"{found!r} is no name of a network device")
        try:
            self.interface()
        except ValueError as error:
            raise InvalidField("address", shortened(str(error), SHOWN)) from None

    @property
    def inside(self) -> str:
        """The name in the pod."""
        return self.new_name or self.name

    def interface(self) -> IPv4Interface | IPv6Interface | None:
        """Return the address in the pod, without a prefix that of one host.

        None where the annotation has none.

        Raises:
            ValueError: The address or its prefix is not valid.
        """
        if not self.address:
            return None
        own = ip_address(self.address)
        return ip_interface(f"{own}/{self.prefix or own.max_prefixlen}")


def devices_of(pod: Pod) -> tuple[Device, ...]:
    """Return the devices that a pod asks for.

    Raises:
        RequestRejected: Its annotation is no list of devices.
    """
    for key in [key + scope for scope in SCOPES for key in KEYS]:
        if (text := pod.annotations.get(key)) is not None:
            try:
                document = parse_yaml(text, references=False) or []
                return convert(document, tuple[Device, ...])
            except InputError as error:
                why = f"{title(pod)}: annotation {key}: {error}"
                raise RequestRejected(why) from None
    return ()


def namespace_of(pod: Pod) -> str:
    """Return the path of the pod's network namespace; empty for that of the host."""
    namespaces = pod.linux.namespaces if pod.linux is not None else ()
    return next((one.path for one in namespaces if one.type == "network"), "")


def title(pod: Pod) -> str:
    """Name a pod."""
    return f"{pod.namespace}/{pod.name}"


class NetworkDeviceInjector(
    ConfigureHandler,
    RunPodSandboxHandler,
    StopPodSandboxHandler,
    RemovePodSandboxHandler,
):
    """The plugin."""

    def __init__(self) -> None:
        self._is_dry_run = False

    def configure(self, configuration: Configuration) -> None:
        """Note whether devices may be moved; there is nothing to configure."""
        self._is_dry_run = configuration.is_dry_run

    def run_pod_sandbox(self, pod: Pod) -> None:
        """Move all devices into the pod, or refuse it and move none."""
        devices = devices_of(pod)
        if not devices:
            return
        namespace = namespace_of(pod)
        if not namespace:
            why = "has the host's network, so no network device can be moved into it"
            raise RequestRejected(f"{title(pod)}: {why}")
        if self._is_dry_run:
            names = [one.name for one in devices]
            log.info("devices.withheld", pod=title(pod), devices=names)
            return
        for count, one in enumerate(devices):
            try:
                place = (one.name, namespace, one.inside)
                lend(*place, mtu=one.mtu, address=one.interface())
            except LinkNotMoved as error:
                self._take_back(pod, devices[:count])
                raise RequestRejected(f"{title(pod)}: {error}") from None
            log.info("device.lent", pod=title(pod), device=one.name, name=one.inside)

    def stop_pod_sandbox(self, pod: Pod) -> None:
        """Move the devices back to the host, as far as the pod has them still."""
        try:
            devices = devices_of(pod)
        except RequestRejected:
            return  # it was not started
        if not self._is_dry_run and namespace_of(pod):
            self._take_back(pod, devices)

    def remove_pod_sandbox(self, pod: Pod) -> None:
        """Rename what the kernel has moved back since the pod stopped."""
        self.stop_pod_sandbox(pod)

    def _take_back(self, pod: Pod, devices: tuple[Device, ...]) -> None:
        for one in reversed(devices):
            try:
                if take_back(one.name, namespace_of(pod), one.inside):
                    log.info("device.returned", pod=title(pod), device=one.name)
            except LinkNotMoved as error:
                why = str(error)
                log.warning("device.not-returned", pod=title(pod), why=why)


if __name__ == "__main__":
    serve(NetworkDeviceInjector(), index="10")
