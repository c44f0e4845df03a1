from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import pytest

import nri_resmgr.app.requests.amounts
import nri_resmgr.config.errors
import nri_resmgr.policy.cpus.request
import nri_resmgr.policy.errors
import nri_resmgr.policy.mems.errors
import nri_resmgr.stub.errors
import nri_resmgr.topology.spec
import nri_resmgr.values.errors
from nri_proto import Code
from nri_resmgr.app.plugin.status_codes import CODES, status_of
from nri_resmgr.policy.cpus import CpusExhausted
from nri_resmgr.stub import RequestRejected
from nri_resmgr.values import BadListFormat, CpuSet, HostError, ResmgrError


def children(branch: type[ResmgrError]) -> list[type[ResmgrError]]:
    # A class with slots is made anew by attrs; the first one lives on as a ghost
    # until the garbage is collected.
    return [
        child
        for child in branch.__subclasses__()
        if getattr(sys.modules[child.__module__], child.__name__, None) is child
    ]


def leaves(branch: type[ResmgrError]) -> Iterator[type[ResmgrError]]:
    for child in children(branch):
        yield from leaves(child)
    if not children(branch):
        yield branch


def test_the_walk_meets_the_leaves_of_every_module() -> None:
    met = {leaf.__module__ for leaf in leaves(ResmgrError)}

    assert met >= {
        nri_resmgr.app.requests.amounts.__name__,
        nri_resmgr.config.errors.__name__,
        nri_resmgr.policy.cpus.request.__name__,
        nri_resmgr.policy.errors.__name__,
        nri_resmgr.policy.mems.errors.__name__,
        nri_resmgr.stub.errors.__name__,
        nri_resmgr.topology.spec.__name__,
        nri_resmgr.values.errors.__name__,
    }


@pytest.mark.parametrize("leaf", sorted(leaves(ResmgrError), key=repr))
def test_no_leaf_reaches_the_runtime_as_internal(leaf: type[ResmgrError]) -> None:
    assert [branch for branch, _ in CODES if issubclass(leaf, branch)] != []
    assert inspect.getdoc(leaf)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(
            CpusExhausted(wanted=2, free=CpuSet.of(1)),
            (Code.RESOURCE_EXHAUSTED, "wanted 2 CPUs, 1 free (1)"),
            id="a refusal",
        ),
        pytest.param(
            BadListFormat("x", "x"),
            (Code.INVALID_ARGUMENT, "not a CPU or node list: 'x' (at 'x')"),
            id="bad text",
        ),
        pytest.param(
            HostError("no sysfs"), (Code.FAILED_PRECONDITION, "no sysfs"), id="the node"
        ),
        pytest.param(
            RequestRejected("go away", Code.ABORTED),
            (Code.ABORTED, "go away"),
            id="a handler's own status",
        ),
        pytest.param(
            KeyError("x"),
            (Code.INTERNAL, "bug in nri-resmgr: KeyError: 'x'"),
            id="a bug of ours",
        ),
    ],
)
def test_an_error_becomes_a_code_and_a_sentence(
    error: Exception, status: tuple[int, str]
) -> None:
    assert status_of(error) == status
