"""Pod annotations: nri-plugins' keys, and CRI Resource Manager's names for them.

`read_preferences` is all that the plugin calls. To read in this order:

* `reading`: `read_preferences`, its result, `Reading`, and the name spaces of keys;
  pods without one of our keys go no further;
* `scopes`: splits keys into name space, stem and scope, and selects the effective one;
* `keys`: the table of keys, each with the reader of its value (`values`, `affinities`);
* `interpret`: applies these readers and collects problems;
* `report`: logs problems once; `queryable`: limits what expressions may query;
* `unobeyed`: finds those that a policy does not obey.

Those of memory classes are read by their setter (`nri_resmgr.app.classes.memory`).
"""

from __future__ import annotations

from nri_resmgr.app.annotations.reading import (
    AnnotationProblem,
    Reading,
    Refused,
    read_preferences,
)
from nri_resmgr.app.annotations.report import ProblemLog
from nri_resmgr.values.annotations import BadAnnotation

__all__ = [
    "AnnotationProblem",
    "BadAnnotation",
    "ProblemLog",
    "Reading",
    "Refused",
    "read_preferences",
]
