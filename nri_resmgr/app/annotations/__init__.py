"""Pod annotations: nri-plugins' keys, and CRI Resource Manager's names for them.

`read_preferences` is all that the plugin calls. To read in this order:

* `reading`: the result for one container, `Reading`, and the name spaces of keys;
* `read`: `read_preferences`; pods without one of our keys go no further;
* `scopes`: splits keys into name space, stem and scope, and selects the effective one;
* `keys`: the table of keys, each with the reader of its value (`values`, `affinities`);
* `interpret`: applies these readers and collects problems;
* `report`: logs problems once; `queryable`: limits what expressions may query.
"""

from __future__ import annotations

from nri_resmgr.app.annotations.errors import BadAnnotation
from nri_resmgr.app.annotations.read import read_preferences
from nri_resmgr.app.annotations.reading import AnnotationProblem, Reading
from nri_resmgr.app.annotations.report import ProblemLog

__all__ = [
    "AnnotationProblem",
    "BadAnnotation",
    "ProblemLog",
    "Reading",
    "read_preferences",
]
