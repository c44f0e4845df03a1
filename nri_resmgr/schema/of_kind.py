"""The shape of each kind of document."""

from __future__ import annotations

from functools import cache

from nri_resmgr.config import API_VERSION
from nri_resmgr.policies.documents import TOP, read_top
from nri_resmgr.schema.notes import Notes, note
from nri_resmgr.schema.samples import FULL, LEAST
from nri_resmgr.schema.shape import Shape


@cache
def shape_of(kind: str) -> Shape:
    """Return the shape of the ``spec`` of documents of a kind.

    Of a kind of another package, which has no samples, it has what its reader reads of
    an empty document; what it reads of others may hold anything.

    Raises:
        BadSetting: There is no such kind, or it rejects an empty document.
    """
    notes = Notes()
    for spec in (FULL[kind], LEAST) if kind in FULL else ({},):
        document = {"apiVersion": API_VERSION, "kind": kind, "spec": spec}
        read_top(note(document, TOP, notes))
    return notes.shape().at("spec")
