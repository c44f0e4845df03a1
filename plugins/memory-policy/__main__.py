"""Sets memory policies of containers, by classes and annotations of pods."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from nri_resmgr.app.classes.memory.injection import injected
from nri_resmgr.app.classes.memory.requests import (
    ARGS_LEVEL,
    POLICY_LEVEL,
    NotInjectable,
    RuntimeSetsNoPolicies,
)
from nri_resmgr.classes.memory import (
    MemoryPlace,
    ResolvedPolicy,
    chosen_numa_policy,
    numa_policy_request,
    resolve_numa_policy,
)
from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.memory_classes import (
    NumaPolicyConfig,
    parse_numa_policy,
    read_numa_policies,
)
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.config.table import Table
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.tree import HostTree
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    Container,
    ContainerAdjustment,
    CreateContainerHandler,
    MemoryPolicy,
    MemoryPolicyFlag,
    MemoryPolicyMode,
    PluginFlags,
    Pod,
    RuntimeInfo,
    add_flags,
    serve,
)
from nri_resmgr.topology import Machine
from nri_resmgr.values import CpuSet, NodeSet

MPOLSET: Final = "/usr/libexec/nri-resmgr/mpolset"


def read_config(text: str) -> NumaPolicyConfig:
    """Read the document, which is that of nri-plugins' memory-policy.

    Raises:
        InputError: It is not valid.
    """
    document = Table("$", {"memoryPolicy": parse_yaml(text)})
    try:
        return read_numa_policies(document, "memoryPolicy")
    except BadSetting as error:
        path = error.path.replace("$.memoryPolicy", "$", 1)
        raise BadSetting(path, error.why) from None


class MemoryPolicies(ConfigureHandler, CreateContainerHandler):
    """The plugin.

    Args:
        machine: The host's hardware.
        mpolset: The program that sets policies where the runtime cannot.
    """

    def __init__(self, machine: Machine, mpolset: Path) -> None:
        self._config = NumaPolicyConfig({})
        self._machine = machine
        self._mpolset = mpolset
        self._runtime = RuntimeInfo()

    def configure(self, configuration: Configuration) -> None:
        """Apply the configuration; called at the start of each session."""
        self._config = read_config(configuration.text)
        self._runtime = configuration.runtime

    def create_container(
        self, pod: Pod, container: Container
    ) -> ContainerAdjustment | None:
        """Return the policy that the pod has for the container.

        Raises:
            ResmgrError: The request cannot be met.
        """
        request = numa_policy_request(pod.annotations, container.name)
        if request is None:
            return None
        title = f"{pod.namespace}/{pod.name}/{container.name}"
        classes = self._config.classes
        policy = chosen_numa_policy(request, classes, parse_numa_policy, title)
        cpu = container.cpu
        place = MemoryPlace(CpuSet.parse(cpu.cpus), NodeSet.parse(cpu.mems))
        found = resolve_numa_policy(policy, place, self._machine, title)
        level = self._runtime.level
        # One of unknown level ignores what it does not know.
        if level is None or level >= POLICY_LEVEL:
            return ContainerAdjustment().set_memory_policy(in_message(found))
        if level < ARGS_LEVEL or not self._config.injects:
            raise RuntimeSetsNoPolicies(title, str(self._runtime), level)
        if not container.args:
            raise NotInjectable(title, "the runtime reports no command of it")
        if not self._mpolset.is_file():
            raise NotInjectable(title, f"there is no {self._mpolset}")
        return injected(ContainerAdjustment(), found, container, str(self._mpolset))


def in_message(found: ResolvedPolicy) -> MemoryPolicy:
    """Return a policy as NRI has it."""
    flags = tuple(MemoryPolicyFlag[flag.name] for flag in found.flags)
    return MemoryPolicy(MemoryPolicyMode[found.mode.name], str(found.nodes), flags)


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("memory-policy", description=__doc__)
    add_flags(parser)
    parser.add_argument(
        "--host-root", type=Path, default=Path("/"), help="where the host's /sys is"
    )
    parser.add_argument(
        "--mpolset", type=Path, default=Path(MPOLSET), help="default %(default)s"
    )
    options = parser.parse_args()
    machine = read_machine(HostTree(options.host_root))
    plugin = MemoryPolicies(machine, options.mpolset)
    # After the plugins that choose CPUs.
    serve(plugin, index="95", flags=PluginFlags.of(options))


if __name__ == "__main__":
    main()
