"""Parts of an OCI spec: mounts, hooks, limits, namespaces, devices."""

from __future__ import annotations

import msgspec


class Mount(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One mount of a container, its key is `destination`."""

    destination: str = ""
    type: str = ""
    source: str = ""
    options: tuple[str, ...] = ()


class Hook(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A program that the OCI runtime runs; `timeout` in seconds."""

    path: str = ""
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class Hooks(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """OCI hooks by the moment at which they run."""

    prestart: tuple[Hook, ...] = ()
    create_runtime: tuple[Hook, ...] = ()
    create_container: tuple[Hook, ...] = ()
    start_container: tuple[Hook, ...] = ()
    poststart: tuple[Hook, ...] = ()
    poststop: tuple[Hook, ...] = ()


class Rlimit(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A setrlimit(2) limit, its key is `type` ("RLIMIT_NOFILE")."""

    type: str = ""
    hard: int = 0
    soft: int = 0


class Namespace(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A namespace, its key is `type` in OCI spelling; without a path it is new."""

    type: str = ""
    path: str = ""


class Device(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A device node, its key is `path`; None leaves mode and owner to the runtime."""

    path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    uid: int | None = None
    gid: int | None = None


class CdiDevice(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A device by its CDI name, "vendor.com/class=name"."""

    name: str = ""


class NetDevice(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The name of a network device inside the container."""

    name: str = ""
