"""``nri-resmgr check`` holds CPU classes against the machine at hand."""

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


def test_all_that_it_cannot_do_is_reported_at_once(
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
