"""A node's pods and containers, as large as the kubelet makes them."""

from __future__ import annotations

from nri_proto import nri_pb2 as pb

_QOS = ("", "/burstable", "/besteffort")


def make_pod(number: int) -> pb.PodSandbox:
    """Make a pod of about 0.8 kB, its class by its number."""
    uid = f"{number:08d}-1111-2222-3333-444444444444"
    return pb.PodSandbox(
        id=f"{number:064x}",
        name=f"deployment-{number}-6f9c7d5b8-x{number:04d}",
        uid=uid,
        namespace=f"team-{number % 10}",
        labels={
            "app.kubernetes.io/name": f"service-{number}",
            "app.kubernetes.io/component": "server",
            "pod-template-hash": "6f9c7d5b8",
        },
        annotations={
            "kubernetes.io/config.seen": "2026-01-01T00:00:00.000000000Z",
            "kubernetes.io/config.source": "api",
        },
        runtime_handler="runc",
        linux=pb.LinuxPodSandbox(
            cgroup_parent=f"/kubepods{_QOS[number % 3]}/pod{uid}",
            pod_resources=pb.LinuxResources(cpu=_cpu(1024)),
        ),
    )


def make_container(number: int, pod: pb.PodSandbox) -> pb.Container:
    """Make a container of about 2 kB: 15 mounts, 10 variables, all resources."""
    return pb.Container(
        id=f"c{number:063x}",
        pod_sandbox_id=pod.id,
        name=f"container-{number}",
        state=pb.CONTAINER_RUNNING,
        labels={
            "io.kubernetes.container.name": f"container-{number}",
            "io.kubernetes.pod.name": pod.name,
            "io.kubernetes.pod.namespace": pod.namespace,
            "io.kubernetes.pod.uid": pod.uid,
        },
        annotations={
            "io.kubernetes.container.hash": f"{number:08x}",
            "io.kubernetes.container.restartCount": "0",
            "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
            "io.kubernetes.pod.terminationGracePeriod": "30",
        },
        args=["/usr/bin/server", "--port=8080", f"--id={number}"],
        env=[f"SERVICE_{i}_HOST=10.0.{i}.{number % 250}" for i in range(10)],
        mounts=[*SYSTEM_MOUNTS, *(_volume(pod, i) for i in range(8))],
        linux=_linux(number, pod),
        created_at=1_700_000_000_000_000_000 + number,
    )


def snapshot(pods: int, containers: int) -> pb.SynchronizeRequest:
    """Make the Synchronize message of a node."""
    sandboxes = [make_pod(number) for number in range(pods)]
    return pb.SynchronizeRequest(
        pods=sandboxes,
        containers=[
            make_container(number, sandboxes[number % pods])
            for number in range(containers)
        ],
    )


def creation(number: int) -> pb.CreateContainerRequest:
    """Make the request for one more container."""
    pod = make_pod(number)
    return pb.CreateContainerRequest(pod=pod, container=make_container(number, pod))


def _cpu(shares: int) -> pb.LinuxCPU:
    return pb.LinuxCPU(
        shares=pb.OptionalUInt64(value=shares),
        quota=pb.OptionalInt64(value=0),
        period=pb.OptionalUInt64(value=100_000),
    )


def _linux(number: int, pod: pb.PodSandbox) -> pb.LinuxContainer:
    return pb.LinuxContainer(
        namespaces=[
            pb.LinuxNamespace(type=kind, path=f"/proc/{1000 + number}/ns/{kind}")
            for kind in ("pid", "ipc", "uts", "mount", "network")
        ],
        resources=pb.LinuxResources(
            memory=pb.LinuxMemory(limit=pb.OptionalInt64(value=1 << 30)),
            cpu=_cpu(2 + number % 500),
        ),
        oom_score_adj=pb.OptionalInt(value=990),
        cgroups_path=f"{pod.linux.cgroup_parent}/c{number:063x}",
    )


def _volume(pod: pb.PodSandbox, number: int) -> pb.Mount:
    return pb.Mount(
        destination=f"/var/lib/data-{number}",
        type="bind",
        source=f"/var/lib/kubelet/pods/{pod.uid}/volumes/data-{number}",
        options=["rbind", "rprivate", "rw"],
    )


SYSTEM_MOUNTS = tuple(
    pb.Mount(destination=where, type=kind, source=kind, options=["nosuid", "noexec"])
    for where, kind in (
        ("/proc", "proc"),
        ("/dev", "tmpfs"),
        ("/dev/pts", "devpts"),
        ("/dev/mqueue", "mqueue"),
        ("/sys", "sysfs"),
        ("/sys/fs/cgroup", "cgroup"),
        ("/etc/hosts", "bind"),
    )
)
