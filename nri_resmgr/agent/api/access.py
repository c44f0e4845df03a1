"""The access to the API server: by a kubeconfig, or as a pod; the name of the node."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from nri_resmgr.agent.api.credentials import CREDENTIAL, Access, Source
from nri_resmgr.agent.api.kubeconfig import read_kubeconfig
from nri_resmgr.host.bounded import read_file
from nri_resmgr.values import InputError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(eq=False)
class NoAccess(InputError):
    """Neither a kubeconfig nor a ServiceAccount is there."""

    why: str

    def __str__(self) -> str:
        return (
            f"no access to a cluster: {self.why}; use --kubeconfig, or run in a pod "
            "with a ServiceAccount token"
        )


@dataclass(eq=False)
class BadAddress(InputError):
    """The address of the API server is not usable."""

    address: str
    why: str

    def __str__(self) -> str:
        return f"address of the API server {self.address!r}: {self.why}"


@dataclass(eq=False)
class NoNodeName(InputError):
    """Neither the flag nor the environment names the node."""

    def __str__(self) -> str:
        return (
            "the name of this node is not known: use --node-name, or set NODE_NAME "
            "from the pod's spec.nodeName"
        )


def find_access(
    kubeconfig: Path | None = None,
    server: str | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Return the access by a kubeconfig if one is named, else that of this pod.

    Args:
        kubeconfig: A kubeconfig; its current context counts.
        server: An explicit address, which replaces that of the kubeconfig or pod, such
            as for a node whose service network is broken.
        environ: The environment, ``os.environ`` by default.
        service_account: The folder of the pod's ServiceAccount.

    Raises:
        InputError: There is no access, or it is not usable; the sentence says why.
    """
    if kubeconfig is not None:
        access = read_kubeconfig(kubeconfig)
    else:
        access = _of_pod(os.environ if environ is None else environ, service_account)
    if server:
        access = msgspec.structs.replace(access, server=server.rstrip("/"))
    _check(access)
    return access


def find_node_name(
    flag: str | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """Return the name of this node: the flag ``--node-name``, else ``NODE_NAME``.

    Raises:
        NoNodeName: Neither is there.
    """
    name = flag or (os.environ if environ is None else environ).get("NODE_NAME", "")
    if not name:
        raise NoNodeName
    return name


def _of_pod(environ: Mapping[str, str], folder: Path) -> Access:
    if not (folder / "token").exists():
        raise NoAccess(f"{folder / 'token'} does not exist")
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "") or "443"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return Access(
        server=f"https://{host}:{port}" if host else "",
        ca=Source(path=folder / "ca.crt"),
        token=Source(path=folder / "token"),
        namespace=_namespace(folder / "namespace"),
    )


def _namespace(path: Path) -> str:
    try:
        return read_file(path, CREDENTIAL).decode(errors="replace").strip()
    except OSError:
        return ""  # an explicit one is asked for where it is needed


def _check(access: Access) -> None:
    address = access.server
    if not address:
        raise NoAccess("KUBERNETES_SERVICE_HOST is not set")
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadAddress(address, str(error)) from None
    if parts.scheme not in ("https", "http") or not host or not address.isprintable():
        raise BadAddress(address, "it is no URL like https://HOST:PORT")
    if parts.username or parts.query or parts.fragment:
        raise BadAddress(address, "it may have a host, a port and a path only")
    if parts.scheme == "http" and (access.token or access.key):
        raise BadAddress(address, "credentials are not sent without TLS: use https")
