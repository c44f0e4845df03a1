"""``nri-resmgr demo`` on machines that people make up."""

from __future__ import annotations

import pytest

from tests.cli.command import nri_resmgr

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        pytest.param(
            "1s7c",
            "nri-resmgr: machine '1s7c' has 7 CPUs; the demo needs 8 or more\n",
            id="one CPU too few",
        ),
        pytest.param(
            "bogus",
            "nri-resmgr: bad machine spec at 'bogus': "
            "want a shape such as 2s2d2n4c2t\n",
            id="no machine",
        ),
    ],
)
def test_a_machine_that_will_not_do_is_reported(spec: str, sentence: str) -> None:
    done = nri_resmgr("demo", "--machine", spec)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", sentence)


def test_the_smallest_machine_holds_the_workload() -> None:
    done = nri_resmgr("demo", "--machine", "1s8c")

    assert (done.returncode, done.stderr) == (0, "")
    assert "The larger one ends as well" in done.stdout
