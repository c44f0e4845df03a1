"""Parts of a manifest as CRI has them; an unread field is an error.

Whoever adds a field to the manifests has to say here what it means to the runtime: the
two cannot drift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from tests.deploy.pod import arguments_of
from tests.real_host._gen import cri_pb2 as pb
from tests.real_host.resources import MIB, Resources

_SECCOMP: Final = {"RuntimeDefault": pb.SecurityProfile.RuntimeDefault}
# What the default procMount hides: Kubernetes, pkg/securitycontext/util.go.
_MASKED: Final = (
    *("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi"),
    "/sys/firmware",
)
_READ_ONLY: Final = (
    *("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"),
)


class NotTranslated(Exception):
    """A manifest says what is not known here; the text says where."""


@attrs.frozen
class Probe:
    """A question over HTTP that a kubelet asks a container."""

    path: str
    port: int


@contextmanager
def read_whole(what: str, fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give *fields* away to be popped.

    Raises:
        NotTranslated: Some are left when the block ends.
    """
    left = dict(fields)
    yield left
    if left:
        raise NotTranslated(f"{what}: {', '.join(sorted(left))}")


def expect(what: str, fields: dict[str, Any], **values: Any) -> None:
    """Pop fields that are to be what the translation is about.

    Raises:
        NotTranslated: One has another value.
    """
    for name, value in values.items():
        if (found := fields.pop(name, None)) != value:
            raise NotTranslated(f"{what}: {name}: {found!r}, not {value!r}")


def container_of(
    fields: dict[str, Any], address: str
) -> tuple[pb.ContainerConfig, dict[str, Probe]]:
    """Translate a container but for its volumes; pops what it reads.

    Args:
        fields: Of the manifest.
        address: The pod's.

    Raises:
        NotTranslated: A value is not known.
    """
    # The image is imported beforehand; the end of the log is only for the API.
    expect(
        "container",
        fields,
        imagePullPolicy="IfNotPresent",
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    ports = {one["name"]: one["containerPort"] for one in fields.pop("ports")}
    probes = {
        name: _probe(name, fields.pop(name), ports)
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    name = fields.pop("name")
    variables = [_variable(one, address) for one in fields["env"]]
    arguments = arguments_of(fields, address)
    del fields["args"], fields["env"]
    config = pb.ContainerConfig(
        metadata=pb.ContainerMetadata(name=name),
        image=pb.ImageSpec(image=fields.pop("image")),
        command=fields.pop("command"),
        args=arguments,
        envs=variables,
        log_path=f"{name}.log",
        linux=pb.LinuxContainerConfig(
            resources=_resources(fields.pop("resources")).message(),
            security_context=_security_context(fields.pop("securityContext")),
        ),
    )
    return config, probes


def _variable(content: Mapping[str, Any], address: str) -> pb.KeyValue:
    with read_whole("env", content) as fields:
        expect("env", fields, valueFrom={"fieldRef": {"fieldPath": "status.podIP"}})
        return pb.KeyValue(key=fields.pop("name"), value=address.encode())


def _probe(what: str, probe: Mapping[str, Any], ports: Mapping[str, int]) -> Probe:
    with read_whole(what, probe) as fields:
        for name in ("periodSeconds", "timeoutSeconds", "failureThreshold"):
            fields.pop(name, None)
        with read_whole(what, fields.pop("httpGet")) as request:
            return Probe(request.pop("path"), ports[request.pop("port")])


def _resources(content: Mapping[str, Any]) -> Resources:
    with read_whole("resources", content) as fields:
        with read_whole("requests", fields.pop("requests")) as requests:
            cpus = int(requests.pop("cpu").removesuffix("m")) / 1000
            requests.pop("memory")  # only the scheduler's
        with read_whole("limits", fields.pop("limits")) as limits:
            memory = int(limits.pop("memory").removesuffix("Mi")) * MIB
    return Resources.burstable(cpus, memory=memory)


def _security_context(content: Mapping[str, Any]) -> pb.LinuxContainerSecurityContext:
    with read_whole("securityContext", content) as fields:
        expect("securityContext", fields, privileged=False)
        with read_whole("seccompProfile", fields.pop("seccompProfile")) as profile:
            seccomp = pb.SecurityProfile(profile_type=_SECCOMP[profile.pop("type")])
        with read_whole("capabilities", fields.pop("capabilities")) as capabilities:
            rights = pb.Capability(
                add_capabilities=capabilities.pop("add"),
                drop_capabilities=capabilities.pop("drop"),
            )
        return pb.LinuxContainerSecurityContext(
            capabilities=rights,
            run_as_user=pb.Int64Value(value=fields.pop("runAsUser")),
            run_as_group=pb.Int64Value(value=fields.pop("runAsGroup")),
            readonly_rootfs=fields.pop("readOnlyRootFilesystem"),
            no_new_privs=not fields.pop("allowPrivilegeEscalation"),
            masked_paths=_MASKED,
            readonly_paths=_READ_ONLY,
            seccomp=seccomp,
        )
