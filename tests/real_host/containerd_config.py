"""The TOML that keeps a test's containerd away from the machine's own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import attrs

from nri_resmgr.runtimes.switch import TOLERATED
from tests.real_host.image import PAUSE
from tests.real_host.patience import is_slow_machine, patience

_CAP_SYS_RESOURCE: Final = 24  # capabilities(7), linux/capability.h
# Bytes of sun_path without the final zero, and of ".ttrpc" (unix(7)).
_SOCKET_LIMIT: Final = 107 - 6

_BESIDE_WORK: Final = 5  # times as slow as alone

VM_HANDLER: Final = "kata-of-runc"
"""A runtime handler with a name of virtual machines, but containers as usual."""


@attrs.frozen
class Options:
    """What tests vary.

    Attributes:
        registration_timeout: Seconds (stretched) that a plugin has to register.
        request_timeout: Seconds (stretched) that a plugin has to answer.
        restrict_oom_score_adj: Never ask for a score below our own; needed
            where the kernel would refuse it, and then the default.
        oci_runtime: Program that makes the containers.
        required_plugin: Plugin without which the default validator refuses
            containers; empty for none. Releases before 2.2 have no such validator.
    """

    registration_timeout: float = 5.0
    request_timeout: float = 2.0
    restrict_oom_score_adj: bool = attrs.field(
        factory=lambda: not may_lower_oom_score()
    )
    oci_runtime: str = attrs.field(
        factory=lambda: os.environ.get("NRI_RESMGR_TEST_OCI_RUNTIME", "runc")
    )
    required_plugin: str = ""


@attrs.frozen
class Layout:
    """Everything of one containerd, below one folder."""

    folder: Path

    def __attrs_post_init__(self) -> None:
        if len(str(self.cri_socket)) > _SOCKET_LIMIT:
            raise ValueError(f"too long for a socket's address: {self.cri_socket}")

    def create(self) -> None:
        """Make the folders; the daemon makes the rest."""
        for path in (self.plugins, self.conf_d, self.cni, self.nri_socket.parent):
            path.mkdir(parents=True, exist_ok=True)

    @property
    def config(self) -> Path:
        """The daemon's configuration file."""
        return self.folder / "config.toml"

    @property
    def log(self) -> Path:
        """All that the daemon printed, over all its starts."""
        return self.folder / "log"

    @property
    def root(self) -> Path:
        """What survives a reboot."""
        return self.folder / "root"

    @property
    def state(self) -> Path:
        """What survives a restart of the daemon."""
        return self.folder / "state"

    @property
    def cri_socket(self) -> Path:
        """Where gRPC is served."""
        return self.folder / "grpc.sock"

    @property
    def nri_socket(self) -> Path:
        """Where external plugins connect; in a folder that pods can be given."""
        return self.folder / "nri" / "nri.sock"

    @property
    def plugins(self) -> Path:
        """Pre-installed plugins, started with the daemon."""
        return self.folder / "plugins"

    @property
    def conf_d(self) -> Path:
        """The pre-installed plugins' configurations."""
        return self.folder / "conf.d"

    @property
    def cni(self) -> Path:
        """Empty but in tests of networks; the daemon watches it."""
        return self.folder / "cni"


def config_text(layout: Layout, release: tuple[int, int], options: Options) -> str:
    """The configuration file of containerd *release*.

    Source:
        containerd, docs/cri/config.md and docs/NRI.md.
    """
    cri = _cri_2(layout, options) if release >= (2, 0) else _cri_1(layout, options)
    tables: dict[str, dict[str, object]] = {
        "": {
            "version": 3 if release >= (2, 0) else 2,
            "root": layout.root,
            "state": layout.state,
        },
        "grpc": {"address": layout.cri_socket},
        "plugins.'io.containerd.internal.v1.opt'": {"path": layout.folder / "opt"},
        "plugins.'io.containerd.nri.v1.nri'": {
            "disable": False,
            "socket_path": layout.nri_socket,
            "plugin_path": layout.plugins,
            "plugin_config_path": layout.conf_d,
            "plugin_registration_timeout": _seconds(options.registration_timeout),
            "plugin_request_timeout": _seconds(options.request_timeout),
        },
        **_validator(options),
        **cri,
    }
    return "\n".join(
        (f"[{name}]\n" if name else "")
        + "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


def may_lower_oom_score(status: Path = Path("/proc/self/status")) -> bool:
    """Whether we hold CAP_SYS_RESOURCE.

    Source:
        proc_pid_oom_score_adj(5); capabilities(7).
    """
    for line in status.read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


def _validator(options: Options) -> dict[str, dict[str, object]]:
    if not options.required_plugin:
        return {}
    return {
        "plugins.'io.containerd.nri.v1.nri'.default_validator": {
            "enable": True,
            "required_plugins": [options.required_plugin],
            "tolerate_missing_plugins_annotation": TOLERATED,
        }
    }


def _cri_1(layout: Layout, options: Options) -> dict[str, dict[str, object]]:
    cri = "plugins.'io.containerd.grpc.v1.cri'"
    return {
        cri: {"sandbox_image": PAUSE, **_runtime(layout, options)},
        f"{cri}.containerd": {"snapshotter": "native"},
        f"{cri}.cni": {"bin_dir": layout.cni, "conf_dir": layout.cni},
        **_runc(f"{cri}.containerd.runtimes.runc", layout, options),
        **_runc(f"{cri}.containerd.runtimes.{VM_HANDLER}", layout, options),
    }


def _cri_2(layout: Layout, options: Options) -> dict[str, dict[str, object]]:
    images = "plugins.'io.containerd.cri.v1.images'"
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    return {
        images: {"snapshotter": "native"},
        f"{images}.pinned_images": {"sandbox": PAUSE},
        runtime: _runtime(layout, options),
        f"{runtime}.cni": {"bin_dirs": [layout.cni], "conf_dir": layout.cni},
        **_runc(f"{runtime}.containerd.runtimes.runc", layout, options),
        **_runc(f"{runtime}.containerd.runtimes.{VM_HANDLER}", layout, options),
    }


def _runtime(layout: Layout, options: Options) -> dict[str, object]:
    return {
        "restrict_oom_score_adj": options.restrict_oom_score_adj,
        "disable_apparmor": True,  # its loader may be missing
        "cdi_spec_dirs": [layout.folder / "cdi"],
        "netns_mounts_under_state_dir": True,
    }


def _runc(table: str, layout: Layout, options: Options) -> dict[str, dict[str, object]]:
    return {
        table: {"runtime_type": "io.containerd.runc.v2"},
        f"{table}.options": {
            "Root": layout.state / "runc",
            "BinaryName": options.oci_runtime,
        },
    }


def _seconds(timeout: float) -> str:
    # A plugin that is late is thrown out, and what it misses meanwhile is missed for
    # good. So an emulated machine has more beside other work than waits have, which
    # only end later.
    stretched = patience(timeout) * (_BESIDE_WORK if is_slow_machine() else 1)
    return f"{round(stretched * 1000)}ms"


def _toml(value: object) -> str:
    # JSON's strings, booleans, numbers and flat lists are TOML's.
    return json.dumps(value, default=str)
