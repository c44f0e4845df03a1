"""Seccomp profiles in OCI spelling: SCMP_ACT_ALLOW, SCMP_ARCH_X86_64."""

from __future__ import annotations

import msgspec

from nri_resmgr.stub.model.enums import ProfileType


class SecurityProfile(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The seccomp profile that the pod asks for."""

    profile_type: ProfileType | int = ProfileType.RUNTIME_DEFAULT
    localhost_ref: str = ""


class SeccompArg(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A condition on argument number `index` of a system call."""

    index: int = 0
    value: int = 0
    value_two: int = 0
    op: str = ""


class SeccompSyscall(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """What happens to some system calls."""

    names: tuple[str, ...] = ()
    action: str = ""
    errno_ret: int | None = None
    args: tuple[SeccompArg, ...] = ()


class Seccomp(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A whole filter; runtimes ignore `default_errno`."""

    default_action: str = ""
    default_errno: int | None = None
    architectures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    listener_path: str = ""
    listener_metadata: str = ""
    syscalls: tuple[SeccompSyscall, ...] = ()
