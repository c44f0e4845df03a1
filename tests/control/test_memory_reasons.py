"""What an explanation says of a container's memory."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from nri_resmgr.control.explain import explanation_of
from nri_resmgr.control.memory_reasons import memory_sentences
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.stub import Container
from nri_resmgr.values import Bytes, QosClass
from tests.app.memory_node import CLASS, EPC, HIGH, MISC, POLICY, QOS, SPEC
from tests.control.daemon_parts import make_parts

NEAR: Final = "MPOL_BIND cpu-nodes MPOL_F_STATIC_NODES"
HEAD: Final = "apiVersion: config.nri/v1alpha1\nkind: TopologyAwarePolicy\nspec:"


def said(annotations: dict[str, str], spec: str = SPEC) -> list[str]:
    web = ContainerSpec(
        id="web",
        name="web",
        title="default/web/web",
        qos=QosClass.BURSTABLE,
        memory_limit=Bytes(1 << 30),
        pod_tags=annotations,
    )
    return list(memory_sentences(web, parse_config(f"{HEAD}{spec}")))


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        pytest.param(
            {QOS: "bronze"},
            f"memory class bronze, by annotation {QOS}: "
            "memory.high 536870912, memory.swap.max max",
            id="a class of the pod",
        ),
        pytest.param(
            {QOS: "bronze", f"{QOS}/web": "none"},
            f"memory class none, by annotation {QOS}/web: no effect",
            id="a class of the container",
        ),
        pytest.param(
            {HIGH: "600M"},
            f"memory, by annotation {HIGH}: memory.high 600M",
            id="a file",
        ),
        pytest.param(
            {QOS: "gold"},
            f"memory class gold, by annotation {QOS}: not applied, default/web/web "
            "asks for memory QoS class 'gold'; known: bronze, none; ",
            id="a class that there is not",
        ),
        pytest.param(
            {CLASS: "spread", f"{CLASS}/container.web": "near"},
            f"memory policy, class near, by annotation {CLASS}/container.web: {NEAR}, "
            "set at creation",
            id="a class of NUMA policy",
        ),
        pytest.param(
            {POLICY: "{mode: MPOL_LOCAL}"},
            f"memory policy, by annotation {POLICY}: MPOL_LOCAL, set at creation",
            id="a NUMA policy of its own",
        ),
        pytest.param(
            {POLICY: "{mode: MPOL_LOCAL}", CLASS: "near"},
            "memory policy: not applied, ",
            id="a policy beside a class",
        ),
        pytest.param(
            {MISC: "sev_es 4", EPC: "64Ki"},
            f"misc limits, by annotation {MISC}, {EPC}: sev_es 4, sgx_epc 65536",
            id="limits",
        ),
        pytest.param(
            {MISC: "sev_es"},
            "misc limits: not applied, ",
            id="limits that mean nothing",
        ),
    ],
)
def test_memory_settings_are_listed_with_their_origin(
    annotations: dict[str, str], sentence: str
) -> None:
    (found,) = said(annotations)

    assert found.startswith(sentence)


def test_an_explanation_lists_memory_settings() -> None:
    parts = make_parts(document=f"{HEAD}{SPEC}")
    pod = msgspec.structs.replace(parts.pod("web"), annotations={CLASS: "near"})
    parts.policy.run_pod_sandbox(pod)
    parts.policy.create_container(
        pod, Container(id="web", name="main", pod_sandbox_id=pod.id)
    )
    (found,) = explanation_of(parts.daemon, "web", "")["containers"]

    assert found["host"] == [
        f"memory policy, class near, by annotation {CLASS}: {NEAR}, set at creation"
    ]


def test_an_annotation_for_a_file_overrides_the_class() -> None:
    assert said({QOS: "bronze", HIGH: "600M"}) == [
        f"memory class bronze, by annotation {QOS}: memory.swap.max max",
        f"memory, by annotation {HIGH}: memory.high 600M",
    ]


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        pytest.param({}, SPEC, id="nothing is asked for"),
        pytest.param({QOS: "", CLASS: "", EPC: ""}, SPEC, id="it is left out of it"),
        pytest.param(
            {QOS: "bronze", CLASS: "near", EPC: "64Ki"},
            " {miscLimits: false}",
            id="all kinds are off",
        ),
    ],
)
def test_without_memory_settings_nothing_is_listed(
    annotations: dict[str, str], spec: str
) -> None:
    assert said(annotations, spec) == []
