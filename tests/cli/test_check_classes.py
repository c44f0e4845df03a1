"""``nri-resmgr check`` holds classes and devices against the machine at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nri_resmgr.cli.main import main
from tests.host.cpu_trees import CPU, intel_pstate, write

DOCUMENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: TopologyAwarePolicy
spec:
  reservedResources: {cpu: "cpuset:0"}
  sharedPoolCPUClass: quiet
  cpuClasses:
  - {name: fast, freqGovernor: swift, disabledCstates: [C9]}
  - {name: quiet, maxFreq: 9GHz}
"""


def test_all_unsupported_settings_are_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, wrong, right = tmp_path / "host", tmp_path / "wrong", tmp_path / "right"
    write(root, intel_pstate())
    wrong.write_text(DOCUMENT)
    right.write_text(DOCUMENT.replace("swift", "performance").replace("C9", "C6"))

    status = main(["check", "--host-root", str(root), str(wrong), str(right)])
    said, _, _ = capsys.readouterr().out.partition("\n\n")

    assert (status, said) == (
        2,
        f"""\
{wrong}:7:18: $.spec.cpuClasses[0].freqGovernor: no governor 'swift'; available: \
performance powersave ({CPU}/cpufreq/policy0/scaling_available_governors)
{wrong}:7:39: $.spec.cpuClasses[0].disabledCstates: no state 'C9'; available: \
POLL C1 C1E C6 ({CPU}/cpu*/cpuidle/state*/name)
{right}:8:19: warning: $.spec.cpuClasses[1].maxFreq: 9 GHz is above \
3.8 GHz, which is set ({CPU}/cpufreq/policy0)""",
    )


def test_devices_of_a_missing_kubelet_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, file, kubelet = tmp_path / "host", tmp_path / "gpus", tmp_path / "kubelet"
    write(root, intel_pstate())
    file.write_text(
        "apiVersion: config.nri/v1alpha1\nkind: BalloonsPolicy\nspec:\n"
        "  reservedResources: {cpu: 'cpuset:0'}\n  balloonTypes:\n"
        "  - {name: gpu, preferCloseToDevices: ['podresourceapi:*/gpu']}\n"
    )
    here = ("--host-root", str(root), "--kubelet-dir", str(kubelet))

    def first_line(*words: str) -> str:
        assert main(["check", *words, str(file)]) == 0
        return capsys.readouterr().out.splitlines()[0]

    assert first_line(*here) == (
        f"{file}:6:40: warning: $.spec.balloonTypes[0].preferCloseToDevices[0]: "
        f"podresourceapi:*/gpu has no effect: {kubelet}/pod-resources/kubelet.sock: no "
        "such socket; kubelets have it from 1.28 on"
    )
    assert "warning" not in first_line("--topology", "2s2n2c2t")
