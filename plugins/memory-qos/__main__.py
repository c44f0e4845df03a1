"""Has containers swap a part of their memory, by classes and annotations of pods."""

from __future__ import annotations

import argparse
from pathlib import Path

import structlog

from nri_resmgr.app.classes.unified import check_version
from nri_resmgr.classes.memory import (
    MemoryQosConfig,
    memory_qos_request,
    memory_qos_unified,
)
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.memory_classes import read_memory_qos
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    CreateContainerHandler,
    LinuxResources,
    PluginFlags,
    Pod,
    UpdateContainerHandler,
    add_flags,
    serve,
)
from nri_resmgr.values import Bytes, ResmgrError

log = structlog.get_logger(__name__)


def read_config(text: str) -> MemoryQosConfig:
    """Read the document, which is that of nri-plugins' memory-qos.

    Raises:
        InputError: It is not valid.
    """
    document = Table("$", {"memoryQos": parse_yaml(text)})
    try:
        return read_memory_qos(document, "memoryQos")
    except BadSetting as error:
        path = error.path.replace("$.memoryQos", "$", 1)
        raise BadSetting(path, error.why) from None


class MemoryQos(ConfigureHandler, CreateContainerHandler, UpdateContainerHandler):
    """The plugin.

    Args:
        host: Files of the host.
    """

    def __init__(self, host: Tree) -> None:
        self._config = MemoryQosConfig({})
        self._host = host

    def configure(self, configuration: Configuration) -> None:
        """Apply the configuration; called at the start of each session."""
        self._config = read_config(configuration.text)

    def create_container(self, pod: Pod, container: Container) -> ContainerAdjustment:
        """Return the files of cgroup v2 that the pod asks for.

        Raises:
            ResmgrError: The request cannot be met.
        """
        files = self._files(pod, container, container.memory.limit)
        return ContainerAdjustment().set_unified(files)

    def update_container(
        self, pod: Pod, container: Container, resources: LinuxResources
    ) -> ContainerUpdate | None:
        """Return what follows from a new memory limit."""
        limit = resources.memory.limit if resources.memory is not None else None
        try:
            files = self._files(pod, container, limit or container.memory.limit)
        except ResmgrError as error:
            # The values of the earlier limit stay in force.
            log.warning("memory-class.not-applied", why=str(error))
            return None
        return ContainerUpdate(container.id).set_unified(files) if files else None

    def _files(
        self, pod: Pod, container: Container, limit: int | None
    ) -> dict[str, str]:
        title = f"{pod.namespace}/{pod.name}/{container.name}"
        request = memory_qos_request(pod.annotations, container.name)
        amount = None if limit is None else Bytes(limit)
        files = memory_qos_unified(request, self._config, amount, title)
        check_version(files, self._host, title)
        return files


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("memory-qos", description=__doc__)
    add_flags(parser)
    parser.add_argument(
        "--host-root", type=Path, default=Path("/"), help="where the host's /sys is"
    )
    options = parser.parse_args()
    plugin = MemoryQos(HostTree(options.host_root))
    serve(plugin, index="10", flags=PluginFlags.of(options))


if __name__ == "__main__":
    main()
