"""Parts of an OCI spec: mounts, hooks, limits, namespaces, devices."""

from __future__ import annotations

import attrs

from nri_resmgr.stub.model.frozen import Value, as_texts, as_tuple
from nri_resmgr.values.declared import frozen


@frozen
class Mount(Value):
    """One mount of a container, its key is `destination`."""

    destination: str = ""
    type: str = ""
    source: str = ""
    options: tuple[str, ...] = attrs.field(default=(), converter=as_texts)


@frozen
class Hook(Value):
    """A program that the OCI runtime runs; `timeout` in seconds."""

    path: str = ""
    args: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    env: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    timeout: int | None = None


@frozen
class Hooks(Value):
    """OCI hooks by the moment at which they run."""

    prestart: tuple[Hook, ...] = attrs.field(default=(), converter=as_tuple)
    create_runtime: tuple[Hook, ...] = attrs.field(default=(), converter=as_tuple)
    create_container: tuple[Hook, ...] = attrs.field(default=(), converter=as_tuple)
    start_container: tuple[Hook, ...] = attrs.field(default=(), converter=as_tuple)
    poststart: tuple[Hook, ...] = attrs.field(default=(), converter=as_tuple)
    poststop: tuple[Hook, ...] = attrs.field(default=(), converter=as_tuple)


@frozen
class Rlimit(Value):
    """A setrlimit(2) limit, its key is `type` ("RLIMIT_NOFILE")."""

    type: str = ""
    hard: int = 0
    soft: int = 0


@frozen
class Namespace(Value):
    """A namespace, its key is `type` in OCI spelling; without a path it is new."""

    type: str = ""
    path: str = ""


@frozen
class Device(Value):
    """A device node, its key is `path`; None leaves mode and owner to the runtime."""

    path: str = ""
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    uid: int | None = None
    gid: int | None = None


@frozen
class CdiDevice(Value):
    """A device by its CDI name, "vendor.com/class=name"."""

    name: str = ""


@frozen
class NetDevice(Value):
    """The name of a network device inside the container."""

    name: str = ""
