"""Managers of the kubelet that would write what we write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.host.kubelet import KubeletManager, static_managers
from nri_resmgr.host.tree import HostTree

CONFIG: Final = "/var/lib/kubelet/config.yaml"
CPU_STATE: Final = "/var/lib/kubelet/cpu_manager_state"
MEMORY_STATE: Final = "/var/lib/kubelet/memory_manager_state"


def state(policy: str) -> str:
    return json.dumps({"policyName": policy, "defaultCpuSet": "", "checksum": 1})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, [], id="a kubelet that is not there is not in the way"),
        pytest.param(
            {CONFIG: "kind: KubeletConfiguration\n", CPU_STATE: state("none")},
            [],
            id="by default neither manager does anything",
        ),
        pytest.param(
            {CPU_STATE: state("static")},
            [("cpu", "static", CPU_STATE)],
            id="its state has a flag, too",
        ),
        pytest.param(
            {MEMORY_STATE: state("Static"), CPU_STATE: state("none")},
            [("memory", "Static", MEMORY_STATE)],
            id="memory alone",
        ),
        pytest.param(
            {
                CONFIG: (
                    "kind: KubeletConfiguration\ncpuManagerPolicy: static\n"
                    "memoryManagerPolicy: 'Static' # since May\n"
                )
            },
            [("cpu", "static", CONFIG), ("memory", "Static", CONFIG)],
            id="what it will do when it is started again",
        ),
        pytest.param(
            {CONFIG: '{\n  "cpuManagerPolicy": "static"\n}'},
            [("cpu", "static", CONFIG)],
            id="a configuration in JSON",
        ),
        pytest.param(
            {CONFIG: "# cpuManagerPolicy: static\ncpuManagerPolicyOptions: static\n"},
            [],
            id="comments and other keys do not count",
        ),
        pytest.param(
            {CPU_STATE: "{", MEMORY_STATE: "[]"}, [], id="files that say nothing"
        ),
    ],
)
def test_static_managers_are_found(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    for path, text in files.items():
        file = tmp_path / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    found = static_managers(HostTree(tmp_path))

    assert found == tuple(KubeletManager(*one) for one in expected)


def test_the_sentence_names_the_remedy() -> None:
    assert str(KubeletManager("memory", "Static", CONFIG)) == (
        "the kubelet's memory manager has the policy Static "
        "(/var/lib/kubelet/config.yaml): it and this daemon will overwrite each "
        "other's pinning; set memoryManagerPolicy to None"
    )
