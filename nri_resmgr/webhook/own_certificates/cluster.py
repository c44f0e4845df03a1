"""The Secret with the certificates, and the CAs in webhook configurations."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from nri_resmgr.agent.api import ApiClient, Ref, Resource
from nri_resmgr.webhook.own_certificates.plan import Pair, Stored

SECRETS: Final = Resource("", "v1", "secrets", "Secret", True)

_GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = Resource(
    _GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
VALIDATING: Final = Resource(
    _GROUP,
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
)

# As in Secrets of the type kubernetes.io/tls.
_CURRENT: Final = ("ca.crt", "tls.crt", "tls.key")
_FOLLOWING: Final = ("following-ca.crt", "following.crt", "following.key")
_FORMER: Final = "former-ca.crt"


class Found(msgspec.Struct, frozen=True):
    """The Secret as it was read.

    Attributes:
        stored: What it has.
        version: Its version, which a write has to name.
    """

    stored: Stored
    version: str


async def read_secret(api: ApiClient, ref: Ref) -> Found:
    """Read the Secret; raises `ApiError`."""
    found = await api.get(ref)
    data = found.body.get("data") or {}
    texts = {key: _decoded(value) for key, value in data.items()}
    stored = Stored(
        _pair(texts, _CURRENT), _pair(texts, _FOLLOWING), texts.get(_FORMER, "")
    )
    return Found(stored, found.version)


async def write_secret(api: ApiClient, ref: Ref, stored: Stored, version: str) -> None:
    """Write the Secret, unless another replica has done so.

    Raises:
        Conflict: It has another version by now.
        ApiError: It was not written.
    """
    data: dict[str, str | None] = {_FORMER: _encoded(stored.former)}
    for keys, pair in ((_CURRENT, stored.current), (_FOLLOWING, stored.following)):
        values = (pair.authority, pair.certificate, pair.key) if pair else ("",) * 3
        data |= dict(zip(keys, map(_encoded, values), strict=True))
    await api.merge_patch(ref, {"metadata": {"resourceVersion": version}, "data": data})


async def publish(api: ApiClient, ref: Ref, bundle: str) -> bool:
    """Have API servers trust the CAs of a bundle, and return whether they did already.

    Raises:
        Conflict: The object was changed meanwhile.
        ApiError: It was not written.
    """
    found = await api.get(ref)
    text = base64.b64encode(bundle.encode()).decode()
    hooks: Sequence[dict[str, Any]] = found.body.get("webhooks") or ()
    if all(one.get("clientConfig", {}).get("caBundle") == text for one in hooks):
        return True
    # A merge patch replaces a list as a whole.
    changed = [
        {**one, "clientConfig": {**one.get("clientConfig", {}), "caBundle": text}}
        for one in hooks
    ]
    metadata = {"resourceVersion": found.version}
    await api.merge_patch(ref, {"metadata": metadata, "webhooks": changed})
    return False


def _pair(texts: Mapping[str, str], keys: Sequence[str]) -> Pair | None:
    authority, certificate, key = (texts.get(name, "") for name in keys)
    if not (authority and certificate and key):
        return None
    return Pair(authority, certificate, key)


def _decoded(value: object) -> str:
    try:
        return base64.b64decode(str(value)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""  # as if it were not there


def _encoded(text: str) -> str | None:
    # None removes the entry.
    return base64.b64encode(text.encode()).decode() if text else None
