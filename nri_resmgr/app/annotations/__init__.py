"""Annotations of pods, read: nri-plugins' keys, and CRI Resource Manager's for them."""

from __future__ import annotations

from nri_resmgr.app.annotations.errors import BadAnnotation
from nri_resmgr.app.annotations.read import Problem, Reading, read_preferences
from nri_resmgr.app.annotations.report import ProblemLog

__all__ = ["BadAnnotation", "Problem", "ProblemLog", "Reading", "read_preferences"]
