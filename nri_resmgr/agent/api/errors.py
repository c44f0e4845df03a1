"""Errors of an API server: each a sentence that says which party can act."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.agent.api.resources import Ref, Resource
from nri_resmgr.values import HostError


class ApiError(HostError):
    """A request to the API server failed.

    Attributes:
        retry_after: The seconds that the server wants to be left alone; none if it did
            not say.
    """

    retry_after: float | None = None


@dataclass(eq=False)
class Unreachable(ApiError):
    """No answer came: no connection, a broken one, or silence."""

    server: str
    why: str

    def __str__(self) -> str:
        return f"no answer from the API server {self.server}: {self.why}"


@dataclass(eq=False)
class TlsFailed(ApiError):
    """The server's certificate was not accepted, or ours was not.

    Attributes:
        server: Its address.
        why: What OpenSSL says.
        clocks: For a certificate that is refused for its dates: the clocks of this
            machine and, if known, of the server.
    """

    server: str
    why: str
    clocks: str = ""

    def __str__(self) -> str:
        advice = (
            f"{self.clocks}; correct the clock that is wrong, or renew the certificate"
            if self.clocks
            else "check the CA of the ServiceAccount or kubeconfig, and the address"
        )
        return f"TLS with the API server {self.server} failed: {self.why}; {advice}"


@dataclass(eq=False)
class Unauthorized(ApiError):
    """401: the server does not accept the credentials, which were just read again."""

    server: str
    credentials: str

    def __str__(self) -> str:
        return (
            f"the API server {self.server} does not accept {self.credentials} (401): "
            "it has expired, or its ServiceAccount or user is gone"
        )


@dataclass(eq=False)
class Forbidden(ApiError):
    """403: a rule of RBAC is missing, or an admission policy objects.

    Attributes:
        verb: As in RBAC rules.
        ref: What the request was about; without a name for all objects.
        why: What the server says.
    """

    verb: str
    ref: Ref
    why: str

    def __str__(self) -> str:
        ref = self.ref
        part = f"/{ref.subresource}" if ref.subresource else ""
        names = f'resourceNames: ["{ref.name}"], ' if ref.name else ""
        role = f"Role in namespace {ref.namespace}" if ref.namespace else "ClusterRole"
        return (
            f"not permitted (403): {self.why}; a {role} bound to this client needs "
            f'{{apiGroups: ["{ref.resource.group}"], '
            f'resources: ["{ref.resource.plural}{part}"], {names}'
            f'verbs: ["{self.verb}"]}}'
        )


@dataclass(eq=False)
class KindMissing(ApiError):
    """404 of a kind: its CRD is not installed, or not in this version."""

    resource: Resource

    def __str__(self) -> str:
        found = self.resource
        return (
            f"the API server has no {found.plural} in {found.api_version} (404): "
            + (
                f"install the CRD {found.plural}.{found.group}"
                if "." in found.group
                else "it is too old for this client"
            )
        )


@dataclass(eq=False)
class ObjectMissing(ApiError):
    """404 of an object, or of the namespace or node that it is to be in."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} does not exist (404): {self.why}"


@dataclass(eq=False)
class Conflict(ApiError):
    """409: the object exists, was changed meanwhile, or fields of it are another's."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} was not written (409): {self.why}"


@dataclass(eq=False)
class ObjectRejected(ApiError):
    """400, 413, 415, 422: the object does not fit the schema of this API server."""

    what: str
    status: int
    why: str

    def __str__(self) -> str:
        return (
            f"{self.what} was not accepted ({self.status}): {self.why}; CRD and client "
            "are probably of different versions"
        )


@dataclass(eq=False)
class ServerFailed(ApiError):
    """429 or 5xx: the server is busy, starting or broken, and says so.

    Attributes:
        status: Of HTTP.
        why: What the server says.
        retry_after: See `ApiError`.
    """

    server: str
    status: int
    why: str
    retry_after: float | None = None

    def __str__(self) -> str:
        status = self.status
        return f"the API server {self.server} cannot answer now ({status}): {self.why}"


@dataclass(eq=False)
class VersionExpired(ApiError):
    """410: the server no longer has what changed since a version."""

    why: str

    def __str__(self) -> str:
        return f"the version is too old (410): {self.why}"


@dataclass(eq=False)
class BadAnswer(ApiError):
    """An answer is not what an API server sends, as from a proxy in between."""

    server: str
    why: str

    def __str__(self) -> str:
        return (
            f"{self.server} does not answer like an API server: {self.why}; check the "
            "address and proxies in between"
        )


@dataclass(eq=False)
class TooLarge(ApiError):
    """An object or answer exceeds a bound; the rest of it was not read."""

    what: str
    most: int

    def __str__(self) -> str:
        return (
            f"{self.what} is larger than {self.most / (1 << 20):g} MiB, which is more "
            "than an API server stores"
        )


@dataclass(eq=False)
class BadObject(ApiError):
    """An object has no name, UID or version, or fields of a wrong type."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} is malformed: {self.why}"
