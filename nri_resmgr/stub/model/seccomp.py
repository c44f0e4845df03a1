"""Seccomp profiles in OCI spelling: SCMP_ACT_ALLOW, SCMP_ARCH_X86_64."""

from __future__ import annotations

import attrs

from nri_resmgr.stub.model.enums import ProfileType
from nri_resmgr.stub.model.frozen import Value, as_texts, as_tuple
from nri_resmgr.values.declared import frozen


@frozen
class SecurityProfile(Value):
    """The seccomp profile that the pod asks for."""

    profile_type: ProfileType | int = ProfileType.RUNTIME_DEFAULT
    localhost_ref: str = ""


@frozen
class SeccompArg(Value):
    """A condition on argument number `index` of a system call."""

    index: int = 0
    value: int = 0
    value_two: int = 0
    op: str = ""


@frozen
class SeccompSyscall(Value):
    """What happens to some system calls."""

    names: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    action: str = ""
    errno_ret: int | None = None
    args: tuple[SeccompArg, ...] = attrs.field(default=(), converter=as_tuple)


@frozen
class Seccomp(Value):
    """A whole filter; runtimes ignore `default_errno`."""

    default_action: str = ""
    default_errno: int | None = None
    architectures: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    flags: tuple[str, ...] = attrs.field(default=(), converter=as_texts)
    listener_path: str = ""
    listener_metadata: str = ""
    syscalls: tuple[SeccompSyscall, ...] = attrs.field(default=(), converter=as_tuple)
