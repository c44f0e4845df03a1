"""Claims of our own driver: prepared with CPUs of their own, and returned."""

from __future__ import annotations

from nri_resmgr.app.plugin.node_policy import NodePolicy
from nri_resmgr.policy.claims import Claim, ClaimsNotOffered, PreparedClaim
from nri_resmgr.policy.events import ClaimPrepared, ClaimReturned


def prepare_claim(policy: NodePolicy, claim: Claim) -> PreparedClaim:
    """Give a claim CPUs of its own, or return those that it has.

    Raises:
        PolicyError: The node cannot grant them.
    """
    if (known := policy.engine.claims.get(claim.uid)) is not None:
        return known
    if policy.options.dry_run:
        raise ClaimsNotOffered("a dry run")
    policy.decide_and_send(ClaimPrepared(claim))
    return policy.engine.claims[claim.uid]


def return_claim(policy: NodePolicy, uid: str) -> None:
    """Take the CPUs of a claim back; it may be unknown.

    Raises:
        ClaimInUse: A container still has them.
    """
    if uid in policy.engine.claims:
        policy.decide_and_send(ClaimReturned(uid))
