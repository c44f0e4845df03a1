"""Handles of pods and containers, filled in as a kubelet would."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

import attrs

from tests.real_host._gen import cri_pb2 as pb
from tests.real_host.cgroups import Cgroup
from tests.real_host.cri import CallFailed, CriClient
from tests.real_host.image import WORK
from tests.real_host.patience import is_slow_machine
from tests.real_host.resources import QosClass, Resources

_NOTHING: Mapping[str, str] = MappingProxyType({})
_SHIM_ENDED = "ttrpc: closed"
_LEVEL = {
    QosClass.GUARANTEED: "",
    QosClass.BURSTABLE: "/burstable",
    QosClass.BEST_EFFORT: "/besteffort",
}


@attrs.frozen
class PodSpec:
    """What a test may choose about a pod; the rest is made up.

    Attributes:
        name: Name in *namespace*.
        qos: Decides the cgroup parent.
        annotations: The user's; kubelet passes them on.
        labels: The user's, beside those that the kubelet adds.
        resources: Sum of the containers' resources, where the kubelet sends it.
        overhead: What the pod itself needs, where the kubelet sends it.
        handler: Runtime handler; empty for the runtime's default.
        host_pids: Whether its containers see all processes of the machine.
        own_network: Whether it has a network namespace; see `install_pod_network`.
        logs: Folder of its containers' logs; None for none.
    """

    name: str
    qos: QosClass = QosClass.GUARANTEED
    namespace: str = "default"
    annotations: Mapping[str, str] = _NOTHING
    labels: Mapping[str, str] = _NOTHING
    resources: Resources | None = None
    overhead: Resources | None = None
    handler: str = ""
    host_pids: bool = False
    own_network: bool = False
    logs: Path | None = None


@attrs.frozen
class ContainerSpec:
    """What a test may choose about a container.

    Attributes:
        command: Replaces the image's endless sleep.
        env: Variables beside the image's.
        annotations: The container's own; the kubelet sets none of the user's.
        mounts: Paths of the host by their paths in the container.
        labels: Beside those that the kubelet adds.
        attempt: Number of earlier containers of this name in the pod.
    """

    name: str
    resources: Resources
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = _NOTHING
    annotations: Mapping[str, str] = _NOTHING
    mounts: Mapping[str, str] = _NOTHING
    labels: Mapping[str, str] = _NOTHING
    attempt: int = 0


@attrs.frozen(eq=False)
class Container:
    """A container of a real runtime."""

    cri: CriClient = attrs.field(repr=False)
    id: str
    name: str
    cgroup: Cgroup

    def start(self) -> None:
        """Start the container that `Pod.create` made."""
        self.cri.start_container(self.id)

    def stop(self) -> None:
        """Kill it; the record stays until `remove`."""
        self.cri.stop_container(self.id)

    def remove(self) -> None:
        """Stop it if it runs, and delete it."""
        self.cri.remove_container(self.id)

    def update(self, resources: Resources) -> None:
        """Resize it in place."""
        self.cri.update_container_resources(self.id, resources.message())

    def exec(self, *command: str) -> str:
        """Run *command* inside and return what it printed.

        Raises:
            CommandFailed: It exited with another code than 0.
        """
        return self.cri.exec_sync(self.id, command)

    def status_field(self, field: str) -> str:
        """One line of a process' ``/proc/PID/status``.

        A process started inside reads its own; on a slow machine the container's
        first process is looked at from outside.

        Source:
            proc_pid_status(5).
        """
        return _field(self._peek() if is_slow_machine() else self._ask(), field)

    def own_status_field(self, field: str) -> str:
        """The same, always read by a process started inside."""
        return _field(self._ask(), field)

    def _ask(self) -> str:
        return self.exec("cat", "/proc/self/status")

    def file(self, path: str) -> str:
        """A file as the container's first process finds it."""
        return (self._first_process() / f"root{path}").read_text()

    def _peek(self) -> str:
        return (self._first_process() / "status").read_text()

    def _first_process(self) -> Path:
        return Path("/proc", str(self.cgroup.processes()[0]))

    def cpus(self) -> str:
        """CPUs it may use, in the kernel's list format."""
        return self.status_field("Cpus_allowed_list")

    def mems(self) -> str:
        """Memory nodes it may use, in the kernel's list format."""
        return self.status_field("Mems_allowed_list")

    def is_running(self) -> bool:
        """Whether it runs, by the runtime's state."""
        return any(
            each.id == self.id and each.state == pb.CONTAINER_RUNNING
            for each in self.cri.containers()
        )


def _field(status: str, field: str) -> str:
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return value.strip()
    raise KeyError(field)


@attrs.frozen(eq=False)
class Pod:
    """A pod of a real runtime; leaving its ``with`` block removes it."""

    cri: CriClient = attrs.field(repr=False)
    id: str
    config: pb.PodSandboxConfig = attrs.field(repr=False)

    @classmethod
    def run(cls, cri: CriClient, spec: PodSpec, cgroup_root: str) -> Self:
        """Start the sandbox of *spec* below the cgroup *cgroup_root*.

        A root such as ``/kubepods.slice`` is for a runtime that has systemd make
        cgroups.
        """
        config = sandbox_config(spec, cgroup_root)
        return cls(cri, cri.run_pod_sandbox(config, spec.handler), config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def cgroup(self) -> Cgroup:
        """The cgroup of its sandbox, where containerd makes cgroups by itself."""
        return Cgroup(f"{self.config.linux.cgroup_parent}/{self.id}")

    def create(self, spec: ContainerSpec) -> Container:
        """Create a container without starting it."""
        config = container_config(spec, self.config.metadata)
        namespaces = self.config.linux.security_context.namespace_options
        if namespaces.pid != pb.POD:
            config.linux.security_context.namespace_options.pid = namespaces.pid
        if self.config.log_directory:
            config.log_path = _log_name(spec.name)
        container = self.cri.create_container(self.id, config, self.config)
        parent = self.config.linux.cgroup_parent
        scope = f"cri-containerd-{container}.scope" if _is_slice(parent) else container
        return Container(self.cri, container, spec.name, Cgroup(f"{parent}/{scope}"))

    def output(self, name: str) -> list[str]:
        """Return the lines that a container has printed, as far as they are logged.

        Source:
            CRI, "time stream tag line"; the tag is F where the line is complete.
        """
        log = Path(self.config.log_directory, _log_name(name))
        rows = log.read_text().splitlines() if log.exists() else []
        return [row.split(" ", 3)[3] for row in rows]

    def start(self, name: str, resources: Resources) -> Container:
        """Create and start a container that sleeps."""
        container = self.create(ContainerSpec(name, resources))
        container.start()
        return container

    def stop(self) -> None:
        """Stop the containers and the sandbox."""
        try:
            self.cri.stop_pod_sandbox(self.id)
        except CallFailed as error:
            # The shim ended by itself while it was asked to end a container. A kubelet
            # would try again as well.
            if _SHIM_ENDED not in str(error):
                raise
            self.cri.stop_pod_sandbox(self.id)

    def remove(self) -> None:
        """Stop it if it runs, and delete it with its containers."""
        self.stop()
        self.cri.remove_pod_sandbox(self.id)


def sandbox_config(spec: PodSpec, cgroup_root: str) -> pb.PodSandboxConfig:
    """The CRI form of *spec*; every call makes another pod (uid)."""
    uid = str(uuid.uuid4())
    linux = pb.LinuxPodSandboxConfig(
        cgroup_parent=_cgroup_parent(cgroup_root, spec.qos, uid),
        resources=spec.resources.message() if spec.resources else None,
        overhead=spec.overhead.message() if spec.overhead else None,
    )
    # There is no CNI plugin but in tests of networks.
    network = pb.POD if spec.own_network else pb.NODE
    linux.security_context.namespace_options.network = network
    if spec.host_pids:
        linux.security_context.namespace_options.pid = pb.NODE
    return pb.PodSandboxConfig(
        metadata=pb.PodSandboxMetadata(
            name=spec.name, uid=uid, namespace=spec.namespace
        ),
        labels={
            "io.kubernetes.pod.name": spec.name,
            "io.kubernetes.pod.namespace": spec.namespace,
            "io.kubernetes.pod.uid": uid,
            **spec.labels,
        },
        annotations=dict(spec.annotations),
        log_directory=str(spec.logs or ""),
        linux=linux,
    )


def _is_slice(cgroup: str) -> bool:
    return cgroup.endswith(".slice")


def _cgroup_parent(root: str, qos: QosClass, uid: str) -> str:
    """Return a pod's cgroup, as the kubelet names it.

    Source:
        kubelet, ``CgroupName.ToSystemd``; systemd.slice(5).
    """
    path = f"{root}{_LEVEL[qos]}/pod{uid}"
    if not _is_slice(root):
        return path
    names = [name.replace("-", "_") for name in path.replace(".slice", "").split("/")]
    slices = ("-".join(names[1 : end + 1]) for end in range(1, len(names)))
    return "".join(f"/{name}.slice" for name in slices)


def container_config(
    spec: ContainerSpec, pod: pb.PodSandboxMetadata
) -> pb.ContainerConfig:
    """The CRI form of *spec* in *pod*."""
    return pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name=spec.name, attempt=spec.attempt),
        image=pb.ImageSpec(image=WORK),
        command=spec.command,
        envs=[pb.KeyValue(key=k, value=v.encode()) for k, v in spec.env.items()],
        mounts=[
            pb.Mount(container_path=inside, host_path=outside)
            for inside, outside in spec.mounts.items()
        ],
        labels={
            "io.kubernetes.container.name": spec.name,
            "io.kubernetes.pod.name": pod.name,
            "io.kubernetes.pod.namespace": pod.namespace,
            "io.kubernetes.pod.uid": pod.uid,
            **spec.labels,
        },
        annotations=dict(spec.annotations),
        linux=pb.LinuxContainerConfig(resources=spec.resources.message()),
    )


def _log_name(container: str) -> str:
    return f"{container}.log"
