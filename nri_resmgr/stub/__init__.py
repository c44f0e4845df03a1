"""The SDK for NRI plugins: sessions with a runtime, typed values, builders.

A plugin is a class with any of the handler methods, or a few decorated functions;
`serve` runs it. See docs/write-a-plugin.md.

Inside, to read in this order: `stub` repeats sessions; `session` is one of them;
`service` and `routes` find the handler of a request; `runner` executes it, within the
deadline of `request`; `replies` checks its result. `pending_updates` and
`update_sender` have the updates that no request asked for; `record_pace` delays those
that nothing waits for. `serve` is the program, with the `flags` that all plugins have;
`dry_run` withholds replies.
"""

from nri_resmgr.stub.adjustment import ContainerAdjustment
from nri_resmgr.stub.discarded import DiscardedResult
from nri_resmgr.stub.errors import (
    BadField,
    BadHandler,
    BadIdentity,
    CalledFromHandler,
    CallFailed,
    CallTimedOut,
    ConfigureMissing,
    ConnectionLost,
    RegistrationRefused,
    ReplyError,
    RequestRejected,
    RuntimeTooOld,
    SessionError,
    SocketUnusable,
    UnsolicitedUpdatesUnsafe,
)
from nri_resmgr.stub.flags import (
    BadConfigFile,
    BadFlag,
    PluginFlags,
    add_flags,
)
from nri_resmgr.stub.handler_types import (
    ConfigureHandler,
    CreateContainerHandler,
    PostCreateContainerHandler,
    PostStartContainerHandler,
    PostUpdateContainerHandler,
    PostUpdatePodSandboxHandler,
    RemoveContainerHandler,
    RemovePodSandboxHandler,
    RunPodSandboxHandler,
    ShutdownHandler,
    StartContainerHandler,
    StopContainerHandler,
    StopPodSandboxHandler,
    SynchronizeHandler,
    UpdateContainerHandler,
    UpdatePodSandboxHandler,
    ValidateContainerAdjustmentHandler,
)
from nri_resmgr.stub.handlers import HANDLER_NAMES, Handlers, Plugin
from nri_resmgr.stub.identity import Identity
from nri_resmgr.stub.model import (
    CdiDevice,
    Container,
    ContainerEviction,
    ContainerState,
    Device,
    DeviceCgroupRule,
    Hook,
    Hooks,
    HugepageLimit,
    IoPriority,
    IoPriorityClass,
    LinuxContainer,
    LinuxCpu,
    LinuxMemory,
    LinuxPod,
    LinuxResources,
    MemoryPolicy,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    Mount,
    Namespace,
    NetDevice,
    Pids,
    Pod,
    Rdt,
    Rlimit,
    Scheduler,
    SchedulerFlag,
    SchedulerPolicy,
    Seccomp,
    SeccompArg,
    SeccompSyscall,
)
from nri_resmgr.stub.observer import Observer, Sender, Tapped
from nri_resmgr.stub.replies import CreateReply, UpdateReply
from nri_resmgr.stub.request import RequestContext, current_request
from nri_resmgr.stub.routes import Validation
from nri_resmgr.stub.runner import Overrun
from nri_resmgr.stub.runtime_info import Configuration, RuntimeInfo
from nri_resmgr.stub.serve import run_until_signal, serve
from nri_resmgr.stub.session import StubOptions
from nri_resmgr.stub.stub import Stub
from nri_resmgr.stub.transport import OpenSocket, SocketPath
from nri_resmgr.stub.update import ContainerUpdate
from nri_resmgr.stub.update_sender import UnsolicitedUpdates
from nri_resmgr.values.errors import InputError

__all__ = [
    "HANDLER_NAMES",
    "BadConfigFile",
    "BadField",
    "BadFlag",
    "BadHandler",
    "BadIdentity",
    "CallFailed",
    "CallTimedOut",
    "CalledFromHandler",
    "CdiDevice",
    "Configuration",
    "ConfigureHandler",
    "ConfigureMissing",
    "ConnectionLost",
    "Container",
    "ContainerAdjustment",
    "ContainerEviction",
    "ContainerState",
    "ContainerUpdate",
    "CreateContainerHandler",
    "CreateReply",
    "Device",
    "DeviceCgroupRule",
    "DiscardedResult",
    "Handlers",
    "Hook",
    "Hooks",
    "HugepageLimit",
    "Identity",
    "InputError",
    "IoPriority",
    "IoPriorityClass",
    "LinuxContainer",
    "LinuxCpu",
    "LinuxMemory",
    "LinuxPod",
    "LinuxResources",
    "MemoryPolicy",
    "MemoryPolicyFlag",
    "MemoryPolicyMode",
    "Mount",
    "Namespace",
    "NetDevice",
    "Observer",
    "OpenSocket",
    "Overrun",
    "Pids",
    "Plugin",
    "PluginFlags",
    "Pod",
    "PostCreateContainerHandler",
    "PostStartContainerHandler",
    "PostUpdateContainerHandler",
    "PostUpdatePodSandboxHandler",
    "Rdt",
    "RegistrationRefused",
    "RemoveContainerHandler",
    "RemovePodSandboxHandler",
    "ReplyError",
    "RequestContext",
    "RequestRejected",
    "Rlimit",
    "RunPodSandboxHandler",
    "RuntimeInfo",
    "RuntimeTooOld",
    "Scheduler",
    "SchedulerFlag",
    "SchedulerPolicy",
    "Seccomp",
    "SeccompArg",
    "SeccompSyscall",
    "Sender",
    "SessionError",
    "ShutdownHandler",
    "SocketPath",
    "SocketUnusable",
    "StartContainerHandler",
    "StopContainerHandler",
    "StopPodSandboxHandler",
    "Stub",
    "StubOptions",
    "SynchronizeHandler",
    "Tapped",
    "UnsolicitedUpdates",
    "UnsolicitedUpdatesUnsafe",
    "UpdateContainerHandler",
    "UpdatePodSandboxHandler",
    "UpdateReply",
    "ValidateContainerAdjustmentHandler",
    "Validation",
    "add_flags",
    "current_request",
    "run_until_signal",
    "serve",
]
