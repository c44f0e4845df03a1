"""Scheduling classes, which policies choose and configurations define."""

from __future__ import annotations

from nri_resmgr.values.scheduling import (
    IoClass,
    SchedulerFlag,
    SchedulerPolicy,
    SchedulingClass,
)

__all__ = ["IoClass", "SchedulerFlag", "SchedulerPolicy", "SchedulingClass"]
