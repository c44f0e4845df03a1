"""The rules of placements, by their names: clients know these as well."""

from __future__ import annotations

import enum


class Rule(enum.StrEnum):
    """The rule that led to a container's placement; logged with every decision."""

    # exclusive CPUs
    WHOLE_CPUS = "whole-cpus"
    ISOLATED_CPU = "isolated-cpu"
    MIXED_CPUS = "mixed-cpus"
    CLAIMED = "claimed"
    OLD_PLACE = "old-place"
    KEPT = "kept"
    GROWN_IN_PLACE = "grown-in-place"
    SHRUNK_IN_PLACE = "shrunk-in-place"
    MOVED = "moved"
    REBALANCED = "rebalanced"
    HINTED = "hinted"
    # shared CPUs
    RESERVED_NAMESPACE = "reserved-namespace"
    RESERVED_ASKED = "reserved-asked"
    RESERVED_FULL = "reserved-full"
    NOT_GUARANTEED = "not-guaranteed"
    NOT_WHOLE_CPUS = "not-whole-cpus"
    SHARED_ASKED = "shared-asked"
    FELL_BACK = "fell-back"
    PRESERVED = "preserved"
    NOT_PINNED = "not-pinned"
    # in a pool by name
    POOL_ASKED = "pool-asked"
    NO_POOL_ASKED = "no-pool-asked"
    POOL_NAMESPACE = "pool-namespace"
    NO_REQUEST = "no-request"
    RESIZED = "resized"
    # in a balloon
    SAME_GROUP = "same-group"
    SAME_POD = "same-pod"
    SAME_NAMESPACE = "same-namespace"
    EMPTY_BALLOON = "empty-balloon"
    NEW_BALLOON = "new-balloon"
    BALANCED = "balanced"
    INFLATED = "inflated"
    # where there was no room before
    NOW_FITS = "now-fits"
    # no placement
    UNCHANGED = "unchanged"
    RELEASED = "released"
    POD_PLACED = "pod-placed"
    PLACE_RESERVED = "place-reserved"
    PLACE_RETURNED = "place-returned"
    CLAIM_PREPARED = "claim-prepared"
    CLAIM_RETURNED = "claim-returned"
    POD_OVERHEAD = "pod-overhead"
    COLD_START = "cold-start"
    COLD_START_ENDED = "cold-start-ended"
    UNKNOWN_CONTAINER = "unknown-container"
