"""What a document in a file costs a start, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.balloons import DOCUMENT
from tests.start.test_imports import printed

pytestmark = pytest.mark.process

# As `nri_resmgr.daemon.start` does before the runtime hears of us.
JUDGED = """
import argparse, sys
from nri_resmgr.app.build import check_fit
from nri_resmgr.daemon.documents import Documents
from nri_resmgr.topology.synthetic import parse_spec
options = argparse.Namespace(config_file={path!r}, fallback_config=None)
machine = parse_spec("1s8c2t")
document, _ = Documents(options, None).first(lambda one: check_fit(one, machine))
print(document.source, *({left_out!r} & sys.modules.keys()))
"""

LEFT_OUT = {
    *("structlog", "difflib", "nri_resmgr.app.engine", "nri_resmgr.stub.model"),
    *("nri_resmgr.app.resource_policy", "nri_resmgr.daemon.configuration"),
    *("nri_resmgr.config.cpu_class_rows", "nri_resmgr.config.rdt"),
    *("nri_resmgr.config.foreign", "nri_resmgr.policy.topology_aware.policy"),
}


def test_a_file_is_judged_without_what_serves(tmp_path: Path) -> None:
    path = tmp_path / "balloons.yaml"
    path.write_text(DOCUMENT)

    found = printed(JUDGED.format(path=str(path), left_out=LEFT_OUT))

    assert found == ["file"]
