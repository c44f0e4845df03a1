"""The present pins of running containers, where the runtime's record is behind.

The first of three steps of a Synchronize: this one decides where containers run, the
next which grants of the checkpoint still count (`nri_resmgr.policy.reported`), the last
what becomes of missed resizes (`catch_up`).

Checked by: tests/app/test_present_pins.py; tests/laws/test_old_checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from nri_resmgr.policy.events import ContainerSpec, Pin
from nri_resmgr.policy.ledger import Entry
from nri_resmgr.topology import Machine
from nri_resmgr.values import NO_CPUS, NO_NODES


def with_present_pins(
    specs: Iterable[ContainerSpec],
    known: Callable[[str], Entry | None],
    in_force: Mapping[str, Pin],
    machine: Machine,
) -> list[ContainerSpec]:
    """Return containers with the pins that the kernel has, where these were decided.

    A decision is in force before the runtime's record follows, and a checkpoint can be
    older than the record. Where the two differ, what the kernel has decides. What it
    has beside both is not from a known decision: another program may have written it,
    and then the record counts.

    Args:
        specs: As the runtime reports them.
        known: Returns a container as it was at its last event.
        in_force: What the kernel has, by container; nothing where it is not known.
        machine: Offline CPUs and nodes are in no cgroup, whatever was decided.
    """
    return [
        spec
        if (entry := known(spec.id)) is None or (pin := in_force.get(spec.id)) is None
        else _with_decided(spec, entry.last_sent, pin, machine)
        for spec in specs
    ]


def _with_decided(
    spec: ContainerSpec, sent: Pin, in_force: Pin, machine: Machine
) -> ContainerSpec:
    online, nodes = machine.online, machine.memory_nodes
    cpus, mems = sent.cpus & online, sent.mems & nodes
    # Nothing leaves the record's: `over` keeps it.
    decided = Pin(
        sent.cpus if cpus and cpus == in_force.cpus & online else NO_CPUS,
        sent.mems if mems and mems == in_force.mems & nodes else NO_NODES,
    )
    present = decided.over(spec.present)
    return spec if present == spec.present else replace(spec, present=present)
