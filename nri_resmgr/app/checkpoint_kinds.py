"""Which module reads and writes the states of which policy."""

from __future__ import annotations

from typing import Any

from nri_resmgr.policy.records import Records

# Late, all of them: one policy is in force.


def records_of(kind: str) -> Records:
    """Return what knows the states of a policy by its kind."""
    found: Any
    match kind:
        case "TopologyAwarePolicy":
            from nri_resmgr.policy.topology_aware import records as found
        case "BalloonsPolicy":
            from nri_resmgr.policy.balloons import records as found
        case "StaticPolicy":
            from nri_resmgr.policy.static import records as found
        case _:
            raise LookupError(f"no policy is called {kind}")
    known: Records = found
    return known
