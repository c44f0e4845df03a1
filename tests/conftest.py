"""The order of tests, and how Hypothesis runs: machines are slow and shared."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest
from hypothesis import HealthCheck, settings

import nri_proto
import nri_resmgr
from tests.real_host.dead_runs import begin_run

# Assertions of helpers show what they compare, as those of tests do.
pytest.register_assert_rewrite("tests.real_host.sights")

# The same examples in each run: what passes before a change goes to main passes after
# it. New ones are searched for by `make fuzz-laws`.
# A fresh clone builds Hypothesis' character table on first use, which takes seconds.
settings.register_profile(
    "whole",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make check`: a law that is broken for good shows in a few examples.
settings.register_profile(
    "quick", settings.get_profile("whole"), max_examples=8, stateful_step_count=20
)
# `make fuzz-laws`: a minute or more for each law.
settings.register_profile(
    "long",
    settings.get_profile("whole"),
    derandomize=False,
    max_examples=5_000,
    print_blob=True,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "whole"))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove what earlier runs left, before workers start."""
    begin_run(session.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage meanwhile, and never again among what is there then.

    Those are 400,000 objects that stay: each worker would look at them many times.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish() -> None:
    """Import all modules of ours: Hypothesis draws constants of those that are loaded.

    Else its examples would depend on the tests that ran before in the same process. The
    emulated machine has neither laws nor all packages.
    """
    if "NRI_RESMGR_TEST_GUEST" in os.environ:
        return
    for package in (nri_proto, nri_resmgr):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".__main__"):
                import_module(module.name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the emulated machine first: all other tests fit beside it.

    Then those of the API server, which are one worker's and wait for ten minutes, and
    those that need a time limit of their own, so that none of them is the last.
    """
    items.sort(
        key=lambda item: (
            item.get_closest_marker("qemu") is None,
            item.get_closest_marker("kubernetes") is None,
            item.get_closest_marker("timeout") is None,
        )
    )


@pytest.fixture(autouse=True, scope="session")
def _own_directories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep daemons that tests start away from those that run here."""
    os.environ["NRI_RESMGR_RUN_DIR"] = str(tmp_path_factory.mktemp("run"))
    # Several run at a time; tests of the state name a directory of their own.
    os.environ["NRI_RESMGR_STATE_DIR"] = os.environ["NRI_RESMGR_CONTROL_SOCKET"] = ""
    yield
    for name in ("RUN_DIR", "STATE_DIR", "CONTROL_SOCKET"):
        del os.environ[f"NRI_RESMGR_{name}"]
