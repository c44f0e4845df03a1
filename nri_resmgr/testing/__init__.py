"""A runtime for tests of NRI plugins, without containerd and without mocks.

`Runtime` is the entry: it serves requests of a kubelet (`cri_service`), accepts and
launches plugins (`sessions`, `launch`), calls them for each event (`rounds`, `plugin`,
`connection`), merges their replies as real runtimes do (`merge`) and applies the result
to its pods and containers (`world`). `Misbehaviour` lets it break the rules.

`containers` makes containers with requests and limits, `running` runs plugins, and
`recording` replays what the logger recorded on a node. `nri_resmgr.pytest_plugin` has
fixtures of these.

Pods, containers, resources and adjustments are values of `nri_resmgr.stub`; recorded
messages are those of `nri_proto`.
"""

from __future__ import annotations

from nri_resmgr.stub.observer import Sender
from nri_resmgr.testing.containers import best_effort, burstable, guaranteed
from nri_resmgr.testing.cri_service import CreateResult, UpdateResult
from nri_resmgr.testing.default_validator import DefaultValidator
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
    UNKNOWN_CONNECTION_FRAME,
    UNKNOWN_FRAME_TYPE,
    Misbehaviour,
    SessionStep,
)
from nri_resmgr.testing.profile import RuntimeOptions
from nri_resmgr.testing.recording import (
    BadSession,
    ReplayedAnswer,
    SessionReplayer,
)
from nri_resmgr.testing.running import (
    PluginEnded,
    PluginRunner,
    plugin_process,
    running_plugin,
)
from nri_resmgr.testing.runtime import Runtime
from nri_resmgr.testing.tape import Failure, RecordedMessage

__all__ = [
    "EMPTY_FRAME",
    "UNKNOWN_CONNECTION_FRAME",
    "UNKNOWN_FRAME_TYPE",
    "AdjustmentRejected",
    "BadSession",
    "CreateResult",
    "DefaultValidator",
    "Failure",
    "FieldConflict",
    "Misbehaviour",
    "PluginEnded",
    "PluginHungUp",
    "PluginLate",
    "PluginLost",
    "PluginRefused",
    "PluginRunner",
    "RecordedMessage",
    "RegistrationFailed",
    "ReplayedAnswer",
    "Runtime",
    "RuntimeOptions",
    "RuntimeRefusal",
    "Sender",
    "SessionReplayer",
    "SessionStep",
    "StartFailed",
    "UpdateDuringCreation",
    "UpdateResult",
    "UpdatesFailed",
    "ValidatorLost",
    "best_effort",
    "burstable",
    "guaranteed",
    "plugin_process",
    "running_plugin",
]
