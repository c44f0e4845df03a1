"""The methods of NRI's two services and their messages."""

from __future__ import annotations

from nri_proto import PLUGIN_METHODS, RUNTIME_METHODS, Trunk
from tests.wire.spelled import (
    PLUGIN_SERVICE,
    REQUEST,
    RUNTIME,
    RUNTIME_SERVICE,
    request,
    trunk,
    ttrpc,
)

# Methods with a request and a response of their own names.
REGULAR = (
    "Configure Synchronize RunPodSandbox UpdatePodSandbox PostUpdatePodSandbox "
    "StopPodSandbox RemovePodSandbox CreateContainer PostCreateContainer "
    "StartContainer PostStartContainer UpdateContainer PostUpdateContainer "
    "StopContainer RemoveContainer ValidateContainerAdjustment"
)


def test_the_plugin_serves_every_call_of_the_schema() -> None:
    regular = {name: (f"{name}Request", f"{name}Response") for name in REGULAR.split()}

    assert {
        name: (method.request.DESCRIPTOR.name, method.response.DESCRIPTOR.name)
        for name, method in PLUGIN_METHODS.items()
    } == regular | {
        "Shutdown": ("Empty", "Empty"),
        "StateChange": ("StateChangeEvent", "Empty"),
    }


def test_the_runtime_serves_two_methods() -> None:
    assert {
        name: (method.request.DESCRIPTOR.name, method.response.DESCRIPTOR.name)
        for name, method in RUNTIME_METHODS.items()
    } == {
        "RegisterPlugin": ("RegisterPluginRequest", "Empty"),
        "UpdateContainers": ("UpdateContainersRequest", "UpdateContainersResponse"),
    }


def test_methods_are_called_by_their_bare_names_on_their_service() -> None:
    names = {
        (method.service, name, method.name)
        for methods in (PLUGIN_METHODS, RUNTIME_METHODS)
        for name, method in methods.items()
    }

    assert names == {
        *((PLUGIN_SERVICE, name, name) for name in PLUGIN_METHODS),
        *((RUNTIME_SERVICE, name, name) for name in RUNTIME_METHODS),
    }


def test_a_call_on_the_trunk_takes_timeout_and_metadata_along() -> None:
    envelope = request(
        "UpdateContainers",
        b"\xff",
        service=RUNTIME_SERVICE,
        timeout_nano=1_500_000_000,
        metadata=[("k", "v")],
    )

    sent = Trunk.of_plugin().call(
        RUNTIME_METHODS["UpdateContainers"],
        b"\xff",
        timeout=1.5,
        metadata=[("k", "v")],
    )

    assert sent == (1, trunk(RUNTIME, ttrpc(1, REQUEST, envelope)))
