"""Real containerds for the tests of this folder, one per release on offer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.real_host.absent import give_up
from tests.real_host.binaries import BONUS, Binaries, binaries, offered_versions
from tests.real_host.containerd import Containerd
from tests.real_host.containerd_config import Options
from tests.real_host.debian import PackageUnavailable

if "NRI_RESMGR_TEST_GUEST" not in os.environ:
    # They are about a machine with 16 CPUs; tests/qemu starts them there.
    collect_ignore = ["test_balloons_story.py", "test_topology_aware_story.py"]


@pytest.fixture(
    scope="session",
    params=[
        # A release's tests share one daemon, so they share a worker.
        pytest.param(version, marks=pytest.mark.xdist_group(f"containerd-{version}"))
        for version in offered_versions()
    ],
)
def programs(request: pytest.FixtureRequest) -> Binaries:
    """A containerd release; tests that want it skip where it cannot be had."""
    try:
        return binaries(request.param)
    except PackageUnavailable as reason:
        why = f"containerd ({request.param}): {reason}"
        if request.param == BONUS:
            pytest.skip(why)
        give_up(why)


@pytest.fixture(scope="session")
def shared_containerd(
    programs: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Containerd]:
    """One daemon for a whole run; ask for `containerd` instead."""
    daemon = Containerd(programs, tmp_path_factory.mktemp("cd"))
    with ExitStack() as stack:
        stack.callback(daemon.close)
        daemon.start()
        yield daemon


@pytest.fixture
def containerd(shared_containerd: Containerd) -> Iterator[Containerd]:
    """A running containerd with default options and without pods.

    A test may kill and restart it; plugin folders it leaves as it found them.
    """
    yield shared_containerd
    if not shared_containerd.is_up():
        shared_containerd.start()
    shared_containerd.remove_pods()


@pytest.fixture
def new_containerd(
    programs: Binaries, tmp_path: Path
) -> Iterator[Callable[[Options], Containerd]]:
    """Make a containerd of the test's own, not yet started.

    Its plugin folders exist, so that plugins can be installed before `start`.
    """
    with ExitStack() as stack:

        def make(options: Options) -> Containerd:
            daemon = Containerd(programs, tmp_path / "cd", options)
            daemon.layout.create()
            stack.callback(daemon.close)
            return daemon

        yield make
