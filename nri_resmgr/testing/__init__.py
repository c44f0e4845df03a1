"""A runtime to test NRI plugins with, without containerd and without mocks.

Pods, containers, resources and adjustments are the values of `nri_resmgr.stub`;
records of the wire hold messages of `nri_proto`.
"""

from __future__ import annotations

from nri_resmgr.testing.errors import (
    AdjustmentRejected,
    FieldConflict,
    PluginHungUp,
    PluginLate,
    PluginLost,
    PluginRefused,
    RegistrationFailed,
    RuntimeRefusal,
    StartFailed,
    UpdateDuringCreation,
    UpdatesFailed,
    ValidatorLost,
)
from nri_resmgr.testing.misbehaviour import (
    EMPTY_FRAME,
    FRAME_FOR_NOBODY,
    UNKNOWN_FRAME_TYPE,
    Misbehaviour,
    SessionStep,
)
from nri_resmgr.testing.profile import RuntimeOptions
from nri_resmgr.testing.results import CreateResult, UpdateResult
from nri_resmgr.testing.running import (
    PluginEnded,
    plugin_process,
    running_plugin,
)
from nri_resmgr.testing.runtime import Runtime
from nri_resmgr.testing.tape import Failure, RecordedMessage, Side

__all__ = [
    "EMPTY_FRAME",
    "FRAME_FOR_NOBODY",
    "UNKNOWN_FRAME_TYPE",
    "AdjustmentRejected",
    "CreateResult",
    "Failure",
    "FieldConflict",
    "Misbehaviour",
    "PluginEnded",
    "PluginHungUp",
    "PluginLate",
    "PluginLost",
    "PluginRefused",
    "RecordedMessage",
    "RegistrationFailed",
    "Runtime",
    "RuntimeOptions",
    "RuntimeRefusal",
    "SessionStep",
    "Side",
    "StartFailed",
    "UpdateDuringCreation",
    "UpdateResult",
    "UpdatesFailed",
    "ValidatorLost",
    "plugin_process",
    "running_plugin",
]
