"""A kubeconfig: the access that its current context gives."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import yaml

from nri_resmgr.agent.api.credentials import CREDENTIAL, Access, Source
from nri_resmgr.host.bounded import read_file, reason
from nri_resmgr.values import InputError


@dataclass(eq=False)
class BadKubeconfig(InputError):
    """A kubeconfig cannot be read, or has no access that can be used."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"kubeconfig {self.path}: {self.why}"


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    exec: object = None
    auth_provider: object = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _Kubeconfig(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] = ()
    users: tuple[_NamedUser, ...] = ()
    contexts: tuple[_NamedContext, ...] = ()


class _Unusable(Exception):
    """The text says why."""


# What a user can have that this client does not do. A request without it would be made
# by other rights than meant, so it is not left out.
_REFUSED: Final = {
    "exec": "runs a program for credentials (exec), which the agent does not: use the "
    "token of a ServiceAccount (tokenFile) or a client certificate",
    "auth_provider": "has an auth-provider, which Kubernetes 1.26 removed: use a token "
    "or a client certificate",
    "username": "has a password, which Kubernetes 1.19 removed: use a token or a "
    "client certificate",
    "impersonate": "impersonates another user (as), which the agent does not",
}

_T = TypeVar("_T")


def read_kubeconfig(path: Path) -> Access:
    """Return the access by the current context of a kubeconfig.

    Raises:
        BadKubeconfig: It cannot be read, or has no access that can be used.
    """
    try:
        return access_of(read_file(path, CREDENTIAL), path)
    except OSError as error:
        raise BadKubeconfig(str(path), reason(error)) from None


def access_of(text: bytes, path: Path) -> Access:
    """Return the access by the current context of a kubeconfig's text.

    Args:
        text: YAML.
        path: Of the file: paths in it are relative to its folder.

    Raises:
        BadKubeconfig: It has no access that can be used.
    """
    try:
        return _access(_parse(text), path.parent)
    except _Unusable as error:
        raise BadKubeconfig(str(path), str(error)) from None


def _parse(text: bytes) -> _Kubeconfig:
    try:
        return msgspec.convert(yaml.load(text, yaml.CSafeLoader), _Kubeconfig)
    except msgspec.ValidationError as error:
        raise _Unusable(str(error)) from None
    # PyYAML raises the latter two for dates and numbers that do not exist.
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        raise _Unusable(f"it is not valid YAML: {error}") from None


def _access(config: _Kubeconfig, folder: Path) -> Access:
    if not config.current_context:
        raise _Unusable("it has no current-context")
    contexts = {one.name: one.context for one in config.contexts}
    context = _named("context", contexts, config.current_context)
    clusters = {one.name: one.cluster for one in config.clusters}
    cluster = _named("cluster", clusters, context.cluster)
    user = _User()
    if context.user:
        users = {one.name: one.user for one in config.users}
        user = _named("user", users, context.user)
    _refuse(context, cluster, user)
    return Access(
        server=cluster.server.rstrip("/"),
        ca=_source(
            cluster.certificate_authority_data, cluster.certificate_authority, folder
        ),
        token=_token(user, folder),
        certificate=_source(
            user.client_certificate_data, user.client_certificate, folder
        ),
        key=_source(user.client_key_data, user.client_key, folder),
        is_verified=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        namespace=context.namespace,
    )


def _refuse(context: _Context, cluster: _Cluster, user: _User) -> None:
    for field, why in _REFUSED.items():
        if getattr(user, field):
            raise _Unusable(f"user {context.user!r} {why}")
    if not cluster.server:
        raise _Unusable(f"cluster {context.cluster!r} has no server")
    if cluster.proxy_url:
        why = "is behind a proxy (proxy-url), which the agent does not use"
        raise _Unusable(f"cluster {context.cluster!r} {why}")
    has_key = user.client_key or user.client_key_data
    if bool(has_key) != bool(user.client_certificate or user.client_certificate_data):
        raise _Unusable(f"user {context.user!r} has one of client-certificate and -key")


def _named(kind: str, found: dict[str, _T], name: str) -> _T:
    if name not in found:
        raise _Unusable(f"it has no {kind} {name!r}")
    return found[name]


def _token(user: _User, folder: Path) -> Source | None:
    # As in client-go, the file counts where both are there.
    if user.token_file:
        return Source(path=folder / user.token_file)
    return Source(text=user.token.encode()) if user.token else None


def _source(data: str, name: str, folder: Path) -> Source | None:
    # As in client-go, the data counts where both are there.
    if data:
        try:
            return Source(text=b64decode(data, validate=True))
        except (binascii.Error, ValueError) as error:
            raise _Unusable(f"a field ending in -data is not base64: {error}") from None
    return Source(path=folder / name) if name else None
