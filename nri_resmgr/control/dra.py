"""``GET /v1/claims``: the DRA driver, its devices, and claims, prepared and wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from nri_resmgr.app.observers.policy_in_force import PolicyInForce
from nri_resmgr.policy.claims import ClaimDevice, PreparedClaim
from nri_resmgr.values.documents import JsonObject

_OFF: Final = "off: spec.dra.enabled of the configuration is not set"


class WantedClaim(Protocol):
    """A claim that the kubelet asks for."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""


class Driver(Protocol):
    """The DRA driver while it serves."""

    @property
    def name(self) -> str:
        """Name of the driver."""

    @property
    def problem(self) -> str:
        """Why the kubelet does not use it; empty while it does."""

    @property
    def wanted(self) -> Mapping[str, WantedClaim]:
        """The claims that wait for the agent, by ask."""


def driver_of(subject: PolicyInForce, driver: Driver | None) -> JsonObject:
    """Describe the driver, its devices, and its claims."""
    policy, state = subject.policy, subject.state
    wanted = driver.wanted if driver else {}
    # Without the driver nothing can be claimed, whatever the policy could give.
    devices = policy.claim_devices(state) if driver and subject.config.dra else ()
    return {
        "driver": driver.name if driver else "",
        "problem": driver.problem if driver else _OFF,
        "devices": [_device(one, subject) for one in devices],
        "claims": list(prepared_claims_of(subject)),
        "wanted": [
            {"ask": ask, "namespace": one.namespace, "name": one.name, "uid": one.uid}
            for ask, one in wanted.items()
        ],
    }


def prepared_claims_of(subject: PolicyInForce) -> Iterator[JsonObject]:
    """Describe the prepared claims, sorted by namespace and name."""
    found = subject.policy.claims(subject.state).values()
    for one in sorted(found, key=_place):
        yield _claim(one, subject)


def _claim(prepared: PreparedClaim, subject: PolicyInForce) -> JsonObject:
    """Describe a prepared claim; its token is left out."""
    claim = prepared.claim
    entries = subject.state.ledger.entries.values()
    return {
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "cpus": str(prepared.cpus),
        "devices": [
            {"device": part.device, "cpus": part.count} for part in claim.parts
        ],
        "containers": [one.spec.id for one in entries if claim.uid in one.spec.claims],
    }


def _device(device: ClaimDevice, subject: PolicyInForce) -> JsonObject:
    machine = subject.machine
    first = device.cpus.first
    return {
        "name": device.name,
        "node": device.node,
        "package": machine.package_of(first).id,
        "cpus": str(device.cpus),
        "claimed": str(device.claimed),
        "capacity": device.capacity,
        "smt": any(len(machine.core_of(cpu).cpus) > 1 for cpu in device.cpus),
    }


def _place(one: PreparedClaim) -> tuple[str, str, str]:
    return one.claim.namespace, one.claim.name, one.claim.uid
