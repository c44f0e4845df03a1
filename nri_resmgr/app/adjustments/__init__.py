"""Adjustments: amounts and classes of containers that the cluster overrides.

`adjustment` is one of them as a value, and `read` makes it of the cluster's objects.
`judgement` finds which one applies to each container, and conflicts. `override` puts it
into a `ContainerSpec` and takes it out again, and `in_force` keeps those that are.
`decided_amounts` has what the runtime may report meanwhile.
"""

from __future__ import annotations
