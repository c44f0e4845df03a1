"""``nri-resmgr convert`` of the kubelet's flags, and of lists of documents."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from nri_resmgr.config.migrate import convert_text
from nri_resmgr.policies import parse_config, read_config
from nri_resmgr.values import InputError

STATIC: Final = "--cpu-manager-policy=static --reserved-cpus=0-1"
DROP_IN: Final = """\
# Of the package of the kubelet.
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
ExecStart=
ExecStart=-/usr/bin/kubelet $KUBELET_CONFIG_ARGS \\
  --cpu-manager-policy static --reserved-cpus 0-1 \\
  --cpu-manager-policy-options=full-pcpus-only=true,align-by-socket=false
"""


def converted(text: str) -> Any:
    """Convert a text; the result is valid."""
    found = convert_text(text, read_config)
    parse_config(found)
    return yaml.safe_load(found)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"KUBELET_EXTRA_ARGS={STATIC!r}\n", id="an environment file"),
        pytest.param(f'export KUBELET_EXTRA_ARGS="{STATIC}"', id="of a shell"),
        pytest.param(f'KUBELET_KUBEADM_ARGS="--x=y {STATIC}"', id="of kubeadm"),
        pytest.param(
            f"KUBELET_A='--cpu-manager-policy=none'\nKUBELET_B='{STATIC}'\n",
            id="the last one of two",
        ),
        pytest.param(DROP_IN, id="a drop-in of a unit"),
        pytest.param(
            f"[Service]\nEnvironment='KUBELET_A=--x' \"KUBELET_B={STATIC}\"\n",
            id="several variables",
        ),
    ],
)
def test_flags_of_the_static_manager(text: str) -> None:
    found = converted(text)

    assert (found["kind"], found["spec"]) == (
        "StaticPolicy",
        {
            "reservedResources": {"cpu": "cpuset:0-1"},
            "pinCPU": True,
            "pinMemory": False,
        },
    )


def test_reserved_amounts_are_added_and_managers_aligned() -> None:
    found = converted(
        'KUBELET_EXTRA_ARGS="--cpu-manager-policy=static '
        "--topology-manager-policy=restricted --topology-manager-scope=pod "
        "--memory-manager-policy=Static --reserved-memory=0:memory=1Gi "
        '--system-reserved cpu=1,memory=1Gi --kube-reserved=cpu=700m"\n'
    )

    assert (found["kind"], found["spec"]) == (
        "TopologyAwarePolicy",
        {
            "reservedResources": {"cpu": "1700m"},
            "pinCPU": True,
            "pinMemory": True,
            "placePods": "strict",
        },
    )


def test_notes_name_flags() -> None:
    found = convert_text(DROP_IN, read_config)

    assert "#   --config /var/lib/kubelet/config.yaml: convert that file" in found
    assert "#   --cpu-manager-policy-options full-pcpus-only: whole cores" in found
    assert "align-by-socket" not in found  # it is off
    assert "$." not in found


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("--cpu-manager-policy=some", "--cpu-manager-policy: 'some' is not none or"),
        ("--kube-reserved=cpu", "--kube-reserved: expected NAME=VALUE,..., not 'cpu'"),
        ("--system-reserved=cpu=x", "--system-reserved cpu: "),
        ("--reserved-cpus", "line 1: --reserved-cpus has no value"),
        ("--reserved-cpus='0", "line 1: no closing quotation"),
    ],
)
def test_mistakes_name_their_flag(flags: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        convert_text(f'KUBELET_EXTRA_ARGS="{flags}"\n', read_config)

    assert str(caught.value).startswith(why)


def test_a_manifest_that_contains_such_a_file_is_unchanged() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n"
        f"  kubelet: |\n    KUBELET_EXTRA_ARGS={STATIC}\n"
    )

    assert convert_text(text, read_config) == text


CONFIG_MAP: Final = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cri-resmgr-config.default"},
    "data": {"policy": "Active: static-plus\nReservedResources: {CPU: 1}\n"},
}
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "annotations": {"memory-type.cri-resource-manager.intel.com/pod": "dram"},
    },
}


def listed(*items: object) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(items)})


def test_a_list_with_configurations_becomes_single_documents() -> None:
    plugins = {"apiVersion": "config.nri/v1alpha1", "kind": "BalloonsPolicy"}
    kubelet = {"apiVersion": "x/v1", "kind": "KubeletConfiguration"}
    found = list(
        yaml.safe_load_all(
            convert_text(listed(CONFIG_MAP, POD, plugins, kubelet), read_config)
        )
    )

    assert [one["kind"] for one in found] == [
        *("StaticPlusPolicy", "Pod", "BalloonsPolicy", "NonePolicy")
    ]
    assert found[0]["spec"] == {"reservedResources": {"cpu": 1}}
    assert list(found[1]["metadata"]["annotations"]) == [
        "memory-type.resource-policy.nri.io/pod"
    ]


def test_a_list_of_manifests_stays_a_list() -> None:
    text = listed(POD, POD)

    assert convert_text(text, read_config) == text.replace(
        "memory-type.cri-resource-manager.intel.com",
        "memory-type.resource-policy.nri.io",
    )


def test_a_mistake_in_a_list_has_its_path() -> None:
    wrong = {**CONFIG_MAP, "data": {"policy": "Active: statics"}}

    with pytest.raises(InputError, match=r"^\$\.items\[1\]\.data\.policy\.Active: "):
        convert_text(listed(POD, wrong), read_config)
