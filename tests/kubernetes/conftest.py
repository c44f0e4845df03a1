"""One API server for the tests of this folder, and a namespace for each of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kubernetes.accounts import Account, make_account
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.kubectl import Kubectl
from tests.kubernetes.nodes import CRDS, Node
from tests.kubernetes.programs import Programs, programs, source_of_programs
from tests.kubernetes.roles import RULES, RULES_OF_NAMESPACE
from tests.real_host.absent import give_up
from tests.real_host.debian import PackageUnavailable


def install_kinds(control_plane: ControlPlane) -> None:
    """Install our custom resource definitions, as a user does."""
    control_plane.kubectl("apply", "--server-side", "-k", CRDS)
    control_plane.kubectl(
        *("wait", "--for=condition=Established", "--timeout=120s", "crd", "--all")
    )


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(
            source_of_programs(),
            marks=[
                pytest.mark.kubernetes,
                # They share one server, so they share a worker.
                pytest.mark.xdist_group("kubernetes"),
                # Of the test itself: the first one may have to build the server, which
                # takes minutes, and starts it.
                pytest.mark.timeout(600, func_only=True),
            ],
        )
    ],
)
def kubernetes() -> Programs:
    """The programs; tests that want them skip where they cannot be had."""
    try:
        return programs()
    except PackageUnavailable as reason:
        give_up(f"kube-apiserver: {reason}")


@pytest.fixture(scope="session")
def shared_control_plane(
    kubernetes: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """One server for a whole run; ask for `control_plane` instead."""
    with ExitStack() as stack:
        made = ControlPlane(kubernetes, tmp_path_factory.mktemp("kubernetes"))
        stack.callback(made.close)
        made.create()
        yield made


@pytest.fixture
def control_plane(shared_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A running API server; a test may kill, pause and restart it.

    Objects without a namespace are all tests': give them names of their own.
    """
    yield shared_control_plane
    if shared_control_plane.is_up():
        shared_control_plane.resume()
    else:
        shared_control_plane.start()


@pytest.fixture
def new_control_plane(
    kubernetes: Programs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], ControlPlane]]:
    """Start a server of the test's own, for what would disturb others."""
    with ExitStack() as stack:

        def make() -> ControlPlane:
            made = ControlPlane(kubernetes, tmp_path_factory.mktemp("kubernetes"))
            stack.callback(made.close)
            made.create()
            return made

        yield make


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """Name of a new namespace; no controller ever empties it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    control_plane.kubectl("create", "namespace", name)
    return name


@pytest.fixture
def kubectl(control_plane: ControlPlane, namespace: str) -> Kubectl:
    """The administrator's client, in the test's namespace."""
    return control_plane.kubectl.within(namespace)


@pytest.fixture
def account(control_plane: ControlPlane, namespace: str) -> Account:
    """A service account without rights in the test's namespace."""
    return make_account(control_plane, namespace)


@pytest.fixture(scope="session")
def our_kinds(shared_control_plane: ControlPlane) -> None:
    """The shared server has our custom resource definitions."""
    install_kinds(shared_control_plane)


@pytest.fixture
def node(
    our_kinds: None, account: Account, kubectl: Kubectl, tmp_path: Path
) -> Iterator[Node]:
    """A node without daemon and agent; the agent will have the shipped rights."""
    name = f"node-{account.namespace}"
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    account.allow(*RULES, cluster=True)
    account.allow(*RULES_OF_NAMESPACE)
    (tmp_path / "spool").mkdir(0o755)
    yield Node(name, tmp_path, account, kubectl)
    kubectl("delete", "node", name, "--wait=false")
