"""Merges the replies of several plugins as NRI's adaptation does, without I/O.

* `creation`, `updates`: merge the replies to one request.
* `owners`, `resources`, `keyed`: which plugin has set which field, and its merging.
* `releases`: differences of older releases of NRI.
* `applying`: applies the merged reply to the container, as runtimes do.

What it guarantees: a reply that a real runtime rejects is rejected here, and one that
it accepts has the same effect, defects included. So plugins can be tested without a
runtime.

How: plugins answer one after the other, and each sees the container as those before it
have changed it. A field, or each key of a field with keys, has one owner. To set what
has an owner is a conflict, even if that is the same plugin. To mark it as removed takes
the ownership away, and only the plugin that did so may set it again; a removed
namespace is owned by the plugin that removed it. Hooks and device rules have no owner:
those of all plugins add up. A conflict in an update of another container is ignored if
the update says so, and then nothing of it is applied.

What was tried: to merge by notes on NRI. Where these left room, Go's source decides:
what is only removed stays in sight of the next plugin, and empty hooks claim nothing.
`releases` has what older releases skip or mistake.

What it costs: an entry of a dictionary for each field and key that is set. Only tests
and the demo merge in this way; the daemon merges its own updates in
`nri_resmgr.stub.pending_updates`.

Checked by: tests/test_runtime/test_merge_creation.py and test_merge_updates.py beside
it, field by field and release by release; tests/test_runtime/test_owners.py.

An example: a second plugin replaces a variable of the first one, and a third one wants
CPUs that have an owner.

>>> from nri_proto import nri_pb2
>>> from nri_resmgr.stub import ContainerAdjustment
>>> from nri_resmgr.stub.replies import create_response
>>> merge = CreationMerge(nri_pb2.Container(id="web"))
>>> first = ContainerAdjustment().set_cpus("0-3").set_env("LEVEL", "1")
>>> merge.apply("10-first", create_response(first, "web"))
>>> second = ContainerAdjustment().replace_env("LEVEL", "2")
>>> merge.apply("20-second", create_response(second, "web"))
>>> merge.adjustment.linux.resources.cpu.cpus, merge.container.env
('0-3', ['LEVEL=2'])
>>> third = ContainerAdjustment().set_cpus("4")
>>> merge.apply("30-third", create_response(third, "web"))  # doctest: +ELLIPSIS
Traceback (most recent call last):
nri_resmgr.testing.errors.FieldConflict: plugins "30-third" and ...

Source:
    nri, pkg/adaptation/result.go; its defects that plugins can observe are simulated.
"""

from __future__ import annotations

from nri_resmgr.testing.merge.applying import (
    apply_adjustment,
    apply_resources,
    overlay_resources,
)
from nri_resmgr.testing.merge.creation import CreationMerge
from nri_resmgr.testing.merge.owners import Owners
from nri_resmgr.testing.merge.updates import UpdateMerge

__all__ = [
    "CreationMerge",
    "Owners",
    "UpdateMerge",
    "apply_adjustment",
    "apply_resources",
    "overlay_resources",
]
