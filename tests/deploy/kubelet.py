"""What a kubelet asks a runtime for, to run the pod of a rendered DaemonSet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from tests.deploy.kubectl import of_kind
from tests.deploy.translated import (
    NotTranslated,
    Probe,
    container_of,
    expect,
    read_whole,
)
from tests.real_host._gen import cri_pb2 as pb
from tests.real_host.pods import PodSpec, sandbox_config
from tests.real_host.resources import QosClass

POD_ADDRESS: Final = "127.0.0.1"
"""Of each pod, in a network of its own."""

# What the API server and the scheduler have seen to before a kubelet sees the pod.
_DONE: Final = ("nodeSelector", "tolerations", "affinity", "serviceAccountName")
# Kubernetes, pkg/kubelet/qos/policy.go.
_OOM_SCORES: Final = {"system-node-critical": -997}
_IS: Final[Mapping[str, Callable[[Path], bool]]] = {
    "Directory": Path.is_dir,
    "DirectoryOrCreate": Path.is_dir,
    "CharDevice": Path.is_char_device,
}


class VolumeMissing(Exception):
    """A pod would not start: the host's path is not there, or is something else."""


@attrs.frozen(eq=False)
class Wanted:
    """A pod with its only container.

    Attributes:
        sandbox: As CRI has it.
        container: As CRI has it; the image is named as in the manifest.
        probes: By the manifest's names.
        grace: Seconds from SIGTERM to SIGKILL.
    """

    sandbox: pb.PodSandboxConfig
    container: pb.ContainerConfig
    probes: Mapping[str, Probe]
    grace: int

    @property
    def log(self) -> Path:
        """What the container prints."""
        return Path(self.sandbox.log_directory, self.container.log_path)


@attrs.frozen
class Kubelet:
    """A node's.

    Attributes:
        cgroup_root: Parent of all pods.
        folder: For volumes and logs; the node has it at the same place.
        seen: Where to find a path of the node from here.
    """

    cgroup_root: str
    folder: Path
    seen: Callable[[str], Path]

    def wanted(self, objects: tuple[dict[str, Any], ...]) -> Wanted:
        """Translate the only DaemonSet of rendered *objects*; make its volumes.

        Raises:
            NotTranslated: A field is not known, or has a value that is not.
            VolumeMissing: The node lacks what a volume asks for.
        """
        daemon_set = of_kind(objects, "DaemonSet")
        sandbox = self._sandbox(daemon_set)
        with read_whole("pod", daemon_set["spec"]["template"]["spec"]) as pod:
            for name in _DONE:
                pod.pop(name, None)
            # Otherwise there would be one more volume, and variables.
            expect(
                "pod", pod, automountServiceAccountToken=False, enableServiceLinks=False
            )
            (container,), volumes = pod.pop("containers"), pod.pop("volumes")
            namespaces = sandbox.linux.security_context.namespace_options
            namespaces.network = pb.POD
            namespaces.pid = pb.NODE if pod.pop("hostPID", False) else pb.CONTAINER
            score = _OOM_SCORES[pod.pop("priorityClassName")]
            grace = pod.pop("terminationGracePeriodSeconds")
        with read_whole("container", container) as fields:
            mounts = fields.pop("volumeMounts")
            config, probes = container_of(fields, POD_ADDRESS)
        maps = {o["metadata"]["name"]: o["data"] for o in objects if _is_map(o)}
        paths = self._volumes(volumes, maps, Path(sandbox.log_directory))
        config.mounts.extend(_mount(mount, paths) for mount in mounts)
        config.linux.resources.oom_score_adj = score
        config.linux.security_context.namespace_options.CopyFrom(namespaces)
        return Wanted(sandbox, config, probes, grace)

    def _sandbox(self, daemon_set: Mapping[str, Any]) -> pb.PodSandboxConfig:
        metadata = daemon_set["spec"]["template"]["metadata"]
        namespace = daemon_set["metadata"]["namespace"]
        notes, labels = metadata["annotations"], metadata["labels"]
        name = daemon_set["metadata"]["name"]
        spec = PodSpec(name, QosClass.BURSTABLE, namespace, notes, labels)
        sandbox = sandbox_config(spec, self.cgroup_root)
        sandbox.hostname = name
        sandbox.log_directory = str(self.folder / sandbox.metadata.uid)
        return sandbox

    def _volumes(
        self,
        volumes: list[dict[str, Any]],
        maps: Mapping[str, Mapping[str, str]],
        folder: Path,
    ) -> dict[str, str]:
        """Return the host's path of each volume."""
        paths = {}
        for volume in volumes:
            match volume:
                case {"name": name, "hostPath": {"path": path, "type": kind}}:
                    self._check(path, kind)
                    paths[name] = path
                case {"name": name, "configMap": {"name": of, **rest}} if not rest:
                    paths[name] = str(folder / name)
                    write_config_map(folder / name, maps[of])
                case _:
                    raise NotTranslated(f"volume: {volume}")
        return paths

    def _check(self, path: str, kind: str) -> None:
        here = self.seen(path)
        if kind == "DirectoryOrCreate":
            here.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not _IS[kind](here):
            raise VolumeMissing(f"{path} is no {kind}")


def write_config_map(folder: Path, data: Mapping[str, str]) -> None:
    """Write files as a kubelet does: all of them change at once.

    Source:
        Kubernetes, pkg/volume/util/atomic_writer.go.
    """
    versions = len(list(folder.glob("..[0-9]*")))
    content = folder / f"..{versions}"
    content.mkdir(parents=True)
    for name, text in data.items():
        (content / name).write_text(text)
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}")
    following = folder / "..data_tmp"
    following.symlink_to(content.name)
    following.rename(folder / "..data")


def _is_map(one: Mapping[str, Any]) -> bool:
    return bool(one["kind"] == "ConfigMap")


def _mount(mount: Mapping[str, Any], paths: Mapping[str, str]) -> pb.Mount:
    with read_whole("volumeMount", mount) as fields:
        return pb.Mount(
            host_path=paths[fields.pop("name")],
            container_path=fields.pop("mountPath"),
            readonly=fields.pop("readOnly", False),
        )
