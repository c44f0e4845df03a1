"""The histories of the campaign: one per policy, on a machine of 32 CPUs."""

from __future__ import annotations

from typing import Final

from tests.faults.history import (
    Step,
    best_effort,
    burstable,
    end_pod,
    guaranteed,
    reconfigure,
    refused,
    remove,
    resize,
    restart_runtime,
    run,
    stop,
)

MACHINE: Final = "2s2n4c2t memory=64Gi"


def document(kind: str, spec: str) -> str:
    return f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"


def _topology_aware(reserved: str, more: str = "") -> str:
    spec = f"{{reservedResources: {{cpu: 'cpuset:{reserved}'}}{more}}}"
    return document("TopologyAwarePolicy", spec)


_BALLOONS: Final = """
  reservedResources: {{cpu: "cpuset:0"}}
  balloonTypes:
    - {{name: web, namespaces: [web], minCPUs: 2, maxCPUs: {most}}}
    - {{name: db, namespaces: [db], preferNewBalloons: true}}
    - {{name: quiet, namespaces: [quiet], shareIdleCPUsInSame: numa}}
"""


def _balloons(most: int) -> str:
    return document("BalloonsPolicy", _BALLOONS.format(most=most))


def _static(reserved: str) -> str:
    spec = f"{{reservedResources: {{cpu: 'cpuset:{reserved}'}}}}"
    return document("StaticPolicy", spec)


TOPOLOGY_AWARE: Final[tuple[Step, ...]] = (
    run("web", burstable(500)),
    run("db", guaranteed(2000)),
    run("mixed", guaranteed(1500)),
    run("batch", best_effort()),
    run("wide", guaranteed(4000)),
    run("front", burstable(1500), "shop"),
    run("side", burstable(250), "shop"),
    refused("huge", guaranteed(64_000)),
    resize("db", guaranteed(3000)),
    stop("mixed"),
    remove("mixed"),
    run("mixed2", guaranteed(1500), "pod-mixed"),
    run("system", burstable(250, "kube-system")),
    restart_runtime(),
    resize("web", burstable(1500)),
    end_pod("shop"),
    run("late", guaranteed(2000)),
    reconfigure("other reserved CPUs", _topology_aware("15,31")),
    run("later", guaranteed(1000)),
    stop("wide"),
    end_pod("pod-db"),
    run("wide2", guaranteed(4000), "pod-wide"),
    reconfigure("pods together", _topology_aware("15,31", ", colocatePods: true")),
    run("twin", guaranteed(1000), "pod-later"),
    resize("twin", guaranteed(2000)),
    restart_runtime(),
    end_pod("pod-wide"),
    end_pod("pod-mixed"),
)

BALLOONS: Final[tuple[Step, ...]] = (
    run("w1", burstable(1000, "web")),
    run("w2", burstable(1500, "web")),
    run("d1", guaranteed(2000, "db")),
    run("d2", guaranteed(3000, "db")),
    run("q1", burstable(1000, "quiet")),
    run("other", best_effort()),
    run("w3", burstable(1500, "web")),
    refused("huge", guaranteed(64_000, "db")),
    resize("d1", guaranteed(4000, "db")),
    run("q2", burstable(2000, "quiet"), "pod-q1"),
    stop("w2"),
    remove("w2"),
    run("w4", burstable(1500, "web"), "pod-w2"),
    restart_runtime(),
    reconfigure("larger balloons", _balloons(8)),
    run("w5", burstable(3000, "web")),
    end_pod("pod-d1"),
    run("system", burstable(250, "kube-system")),
    run("d3", guaranteed(1000, "db")),
    end_pod("pod-w1"),
    end_pod("pod-q1"),
)

STATIC: Final[tuple[Step, ...]] = (
    run("web", burstable(500)),
    run("db", guaranteed(2000)),
    run("batch", best_effort()),
    run("wide", guaranteed(4000)),
    run("mixed", guaranteed(1500)),
    resize("db", guaranteed(3000)),
    restart_runtime(),
    stop("wide"),
    reconfigure("other reserved CPUs", _static("1")),
    run("late", guaranteed(6000)),
    run("wide2", guaranteed(4000), "pod-wide"),
    end_pod("pod-db"),
)

BEGINNINGS: Final = {
    "topology-aware": (_topology_aware("0,16"), TOPOLOGY_AWARE),
    "balloons": (_balloons(4), BALLOONS),
    "static": (_static("0"), STATIC),
}
"""Of each policy the first document, and what happens then."""
