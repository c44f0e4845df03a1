"""The table of annotation keys."""

from __future__ import annotations

from typing import Any

from nri_resmgr.app.annotations.keys import AFFINITY_KEYS, KEYS, Key
from nri_resmgr.app.annotations.unobeyed import field_of, is_obeyed, refuses
from nri_resmgr.policy.base import PolicyBase
from tests.docs.markdown import code, merged, table
from tests.policy.every_policy import POLICIES

_BY_KERNEL = {"toptierlimit": "by the kernel"}


def annotation_keys(body: str) -> str:
    """Write every key; what values it takes and what they mean is by hand."""
    return merged(
        body,
        ("key", "value", "mistakes", "in force", "meaning"),
        {
            name: (
                None,
                "strict" if key.strict else "soft",
                _BY_KERNEL.get(name, "yes"),
                None,
            )
            for name, key in KEYS.items()
        },
    )


def obeyed_keys(_: str) -> str:
    """Write for every key which policies obey it, and what the others do."""
    rows = [
        (code(name), *(_answer(policy, key) for policy in POLICIES))
        for name, key in KEYS.items()
    ]
    rows += [
        (
            code(f"resource-policy.nri.io{name}"),
            *(_obeyed("affinities" in policy.obeys, "ignored") for policy in POLICIES),
        )
        for name in AFFINITY_KEYS
    ]
    return table(("key", *(policy.kind for policy in POLICIES)), rows)


def _answer(policy: type[PolicyBase[Any]], key: Key) -> str:
    is_refused = policy.refuses_strict and refuses(key)
    otherwise = "**refused**" if is_refused else "ignored"
    return _obeyed(is_obeyed(field_of(key), policy.obeys), otherwise)


def _obeyed(is_so: bool, otherwise: str) -> str:  # noqa: FBT001 - two columns of text
    return "obeyed" if is_so else otherwise
