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


@pytest.mark.parametrize(
    ("code", "prints"),
    [
        pytest.param(
            "import re; yaml.load('a: {b: [1, x]}', yaml.CSafeLoader);"
            "kept = [pattern for _, pattern, _ in re._cache];"
            "print(yaml.reader.Reader.NON_PRINTABLE._text in kept)",
            "False",
            id="the pattern of what is no text is not compiled for the C library",
        ),
        pytest.param(
            "import re; print(re.Pattern is yaml.reader.re.Pattern)",
            "True",
            id="all else of re is there",
        ),
        pytest.param(
            "print(yaml.safe_load('{a: [b]}'))", "{'a': ['b']}", id="text is read"
        ),
        pytest.param(
            "print(yaml.safe_load('2001-12-14t21:59:43Z').minute)",
            "59",
            id="a time is read",
        ),
        pytest.param(
            "print(issubclass(yaml.reader.ReaderError, yaml.YAMLError))",
            "True",
            id="errors are of the library",
        ),
    ],
)
def test_others_find_the_yaml_library_as_they_know_it(code: str, prints: str) -> None:
    done = printed(f"from nri_resmgr.config.yaml_library import yaml\n{code}")

    assert " ".join(done) == prints


REFUSED = """
from nri_resmgr.config.yaml_library import yaml
try:
    yaml.safe_load("a: \\x07")
except yaml.reader.ReaderError as error:
    print(error.position)
"""


def test_what_is_no_text_is_refused_by_the_reader_in_python() -> None:
    assert printed(REFUSED) == ["3"]
