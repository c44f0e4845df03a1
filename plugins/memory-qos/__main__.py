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
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.host.tree import HostTree, Tree
from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    ContainerUpdate,
    CreateContainerHandler,
    InputError,
    LinuxResources,
    Pod,
    UpdateContainerHandler,
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
        config: Counts unless the runtime hands over a document.
        host: Files of the host.
    """

    def __init__(self, config: MemoryQosConfig, host: Tree) -> None:
        self._initial = self._config = config
        self._host = host

    def configure(self, configuration: Configuration) -> None:
        """Apply the document of the runtime, if there is one, in place of the file."""
        text = configuration.text
        self._config = read_config(text) if text else self._initial

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
    parser.add_argument("--name", help="name to register with")
    parser.add_argument("--index", help="two digits, the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="socket of the runtime")
    parser.add_argument(
        "--config-file",
        type=Path,
        metavar="PATH",
        help="document for a plugin that the runtime does not start",
    )
    parser.add_argument(
        "--host-root", type=Path, default=Path("/"), help="where the host's /sys is"
    )
    options = parser.parse_args()
    configure_logging()
    try:
        text = read_text_file(options.config_file) if options.config_file else ""
        plugin = MemoryQos(read_config(text), HostTree(options.host_root))
    except InputError as error:
        parser.error(f"--config-file: {error}")
    serve(plugin, name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
