"""The claims that a container has, by its environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from nri_resmgr.policy.claims import Claim, PreparedClaim

PREFIX: Final = "NRI_RESMGR_CLAIM_"

_MOST: Final = 32  # claims of a pod; Kubernetes permits as many
_LONGEST: Final = 256  # characters of a variable


def variable_of(claim: Claim) -> str:
    """Return the variable, ``NAME=value``, that containers with a claim have.

    Its value is random and in no object of the cluster, so that a pod cannot set it for
    a claim that it does not have.
    """
    return f"{PREFIX}{claim.uid.replace('-', '_')}={claim.token}"


def claim_variables(env: Iterable[str]) -> tuple[str, ...]:
    """Return the variables of claims; what they say may not be true."""
    found = (one for one in env if one.startswith(PREFIX) and len(one) <= _LONGEST)
    return tuple(islice(found, _MOST))


def claims_in(
    env: Sequence[str], claims: Mapping[str, PreparedClaim]
) -> tuple[PreparedClaim, ...]:
    """Return the claims that a container has, among those that are prepared here."""
    if not claims:
        return ()
    found = set(env)
    return tuple(
        one
        for one in claims.values()
        if one.claim.token and variable_of(one.claim) in found
    )


def unknown_claims(env: Iterable[str], known: Sequence[PreparedClaim]) -> list[str]:
    """Return the names of variables that name claims which the container has not."""
    names = {variable_of(one.claim).partition("=")[0] for one in known}
    found = (one.partition("=")[0] for one in env if one.startswith(PREFIX))
    return sorted({name for name in found if name not in names})
