"""Limits SGX's protected memory of containers by annotations of their pods."""

from __future__ import annotations

import argparse
from pathlib import Path

from nri_resmgr.app.classes.unified import check_version
from nri_resmgr.classes.memory import EPC_KEY, misc_files, misc_limits, read_capacity
from nri_resmgr.classes.unified import as_unified
from nri_resmgr.host.cgroups.layout import MISC_CAPACITY
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.stub import (
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    PluginFlags,
    Pod,
    add_flags,
    serve,
)


class SgxEpc(CreateContainerHandler):
    """The plugin.

    Args:
        host: Files of the host.
    """

    def __init__(self, host: Tree) -> None:
        self._host = host

    def create_container(
        self, pod: Pod, container: Container
    ) -> ContainerAdjustment | None:
        """Return the limit that the pod has for the container.

        Raises:
            ResmgrError: It is invalid, or the host cannot limit this memory.
        """
        own = {key: pod.annotations[key] for key in pod.annotations if is_ours(key)}
        if not (limits := misc_limits(own, container.name)):
            return None
        title = f"{pod.namespace}/{pod.name}/{container.name}"
        check_version(("misc.max",), self._host, title)
        known = read_capacity(self._host.read(MISC_CAPACITY))
        files = as_unified(misc_files(limits, known, title), by_line=False)
        return ContainerAdjustment().set_unified(files.values)


def is_ours(key: str) -> bool:
    """Return whether an annotation is about this limit, in any scope."""
    return key.partition("/")[0] == EPC_KEY


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("sgx-epc", description=__doc__)
    add_flags(parser)
    parser.add_argument(
        "--host-root", type=Path, default=Path("/"), help="where the host's /sys is"
    )
    options = parser.parse_args()
    plugin = SgxEpc(HostTree(options.host_root))
    serve(plugin, index="10", flags=PluginFlags.of(options))


if __name__ == "__main__":
    main()
