"""Why NRI cannot be switched on here, by who can act."""

from __future__ import annotations

from dataclasses import dataclass

from nri_resmgr.values.errors import HostError, InputError


@dataclass(eq=False)
class NoRuntime(HostError):
    """Nothing tells which runtime the node has."""

    def __str__(self) -> str:
        return (
            "no containerd and no CRI-O found, neither a process nor a socket nor an "
            "enabled unit; --containerd or --crio says which one it will be"
        )


@dataclass(eq=False)
class TwoRuntimes(InputError):
    """The node has both."""

    containerd: str
    crio: str

    def __str__(self) -> str:
        return (
            f"both runtimes are here: containerd ({self.containerd}) and CRI-O "
            f"({self.crio}); say which one the kubelet uses: --containerd or --crio"
        )


@dataclass(eq=False)
class UnusableConfig(HostError):
    """A file of the runtime cannot be read or written, or is not root's alone."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} {self.why}"


@dataclass(eq=False)
class FlagWins(InputError):
    """The runtime was started with a flag that goes before its files."""

    flag: str

    def __str__(self) -> str:
        return f"CRI-O runs with {self.flag}, which goes before its files; remove it"


@dataclass(eq=False)
class BadFlags(InputError):
    """Flags that do not go together."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(eq=False)
class NotRestarted(HostError):
    """The configuration is written, but the runtime did not start again."""

    unit: str
    why: str

    def __str__(self) -> str:
        return (
            f"the files are written, but {self.unit} was not restarted: {self.why}; "
            f"see `journalctl -u {self.unit}`; --undo takes the change back"
        )
