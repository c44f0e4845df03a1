"""The counts of `make structure`, on sources small enough to count by hand."""

from __future__ import annotations

import ast

import pytest

from tests.benchmarks.workload import amounts_of
from tests.structure import crossing
from tests.structure.source import (
    Module,
    arrows_of_app,
    direct,
    floors,
    late_imports_of,
    length,
    lines_by_package,
    modules,
    package_of,
    without_reason,
)

CHAIN = frozenset({("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")})
CIRCLE = CHAIN | {("c", "b")}


def test_floors_are_the_longest_chain() -> None:
    assert (floors(frozenset()), floors(CHAIN)) == (0, 3)


def test_a_circle_is_one_floor() -> None:
    assert floors(CIRCLE) == 2


def test_an_arrow_beside_a_longer_way_is_not_direct() -> None:
    assert CHAIN - direct(CHAIN) == {("a", "c")}


def test_imports_inside_of_functions_are_late() -> None:
    text = """
import a
class B:
    import c
    def d(self):
        import e
        def f():
            from g import h, i
"""

    found = [ast.unparse(one) for one in late_imports_of(ast.parse(text))]

    assert found == ["import e", "from g import h, i"]


def test_late_imports_and_blocks_for_types_have_their_reasons() -> None:
    found = {
        name: lines for name, one in modules().items() if (lines := without_reason(one))
    }

    assert found == {}


def test_an_import_without_reason_is_found() -> None:
    text = """
if TYPE_CHECKING:  # few nodes have it
    import a

if TYPE_CHECKING:
    import b
def f():
    import c  # late: optional
    import d
    # Late: it is large.
    from e import (
        g,
    )
    from h import i

    import j
"""

    assert without_reason(Module(text, ast.parse(text))) == [16, 5]


def test_docstrings_and_blank_lines_are_no_length() -> None:
    text = 'def f():\n    """Two\n    lines."""\n\n    # why\n    return 1\n'
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)

    assert length(function, text) == 3


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("nri_resmgr.policy.cpus", "nri_resmgr.policy"),
        ("nri_resmgr.version", "nri_resmgr"),
        ("nri_proto.mux", "nri_proto"),
    ],
)
def test_a_module_is_counted_with_its_package(module: str, package: str) -> None:
    assert package_of(module) == package


def test_the_present_tree_is_counted() -> None:
    packages = lines_by_package()

    assert packages["nri_resmgr.app"] > packages["nri_proto"] > 0
    assert floors(arrows_of_app()) > 1


def test_both_containers_of_the_crossing_are_alike() -> None:
    first, second = amounts_of(crossing.FIRST), amounts_of(crossing.SECOND)

    assert first == second
    assert first.qos == "/burstable"
