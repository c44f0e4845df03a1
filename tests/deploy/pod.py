"""What the pod of a rendered DaemonSet may do on its node."""

from __future__ import annotations

from typing import Any, Final

from tests.deploy.kubectl import of_kind

HOST_ROOT: Final = "/host"


def pod_of(objects: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """Return the pod's spec; one that is a DaemonSet's."""
    spec: dict[str, Any] = of_kind(objects, "DaemonSet")["spec"]["template"]["spec"]
    return spec


def container_of(pod: dict[str, Any]) -> dict[str, Any]:
    """Return its only container."""
    (container,) = pod["containers"]
    found: dict[str, Any] = container
    return found


def arguments_of(container: dict[str, Any], address: str) -> list[str]:
    """Return the arguments as the kubelet gives them to a pod with this address."""
    values = {"status.podIP": address, "spec.nodeName": "node-1"}
    arguments = list(container["args"])
    for one in container.get("env", ()):
        value = values[one["valueFrom"]["fieldRef"]["fieldPath"]]
        arguments = [text.replace(f"$({one['name']})", value) for text in arguments]
    return arguments


def host_mounts(pod: dict[str, Any]) -> dict[str, str]:
    """Return the host's paths that are mounted, with how."""
    paths = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in pod["volumes"]
        if "hostPath" in volume
    }
    return {
        paths[mount["name"]]: "read-only" if mount.get("readOnly") else "writable"
        for mount in container_of(pod)["volumeMounts"]
        if mount["name"] in paths
    }


def rights_of(pod: dict[str, Any]) -> frozenset[str]:
    """Return mounts and rights, each in a word or two."""
    context = container_of(pod)["securityContext"]
    options = pod.get("securityContext", {}).get("seLinuxOptions", {})
    flags = {name for name in ("hostPID", "hostIPC", "hostNetwork") if pod.get(name)}
    if context["privileged"]:
        flags.add("privileged")
    return frozenset(
        {f"{path} ({how})" for path, how in host_mounts(pod).items()}
        | flags
        | set(context["capabilities"].get("add") or ())
        | set(options.values())
    )
