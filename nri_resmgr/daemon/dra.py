"""The node's DRA driver: claims of the cluster become placements of the policy.

Three parties take part. The kubelet names a claim and waits. The agent, which has
access to the API server, hands over what the scheduler has allocated to the claim, by
the spool folder. The policy picks CPUs, which the claim keeps until the kubelet gives
it back.

Each step leaves the disk in a state from which a repeated call goes on: first the
decision is in the checkpoint, then there is a CDI file, then the kubelet has the
answer.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from nri_resmgr.app.background.threads import in_thread
from nri_resmgr.app.configuration.cluster import ClusterStatus
from nri_resmgr.app.plugin.changes.prepared_claims import prepare_claim, return_claim
from nri_resmgr.app.requests.allocated_claims import (
    AllocatedClaim,
    claim_of,
    read_claims,
)
from nri_resmgr.app.requests.claim_environment import variable_of
from nri_resmgr.checkpoint.writer import CheckpointWriter
from nri_resmgr.daemon.parts import Daemon
from nri_resmgr.host.cdi import CdiFiles
from nri_resmgr.host.spool_folder import SpoolFolder
from nri_resmgr.kubelet.dra import ClaimName, DraPlugin, PluginPaths, PreparedDevice
from nri_resmgr.policy.claims import PreparedClaim
from nri_resmgr.spool import CLAIMS, BadSpoolFile, decode
from nri_resmgr.values import HostError, InputError

DRIVER: Final = "cpu.resmgr.nri.io"
"""Name of the driver, and the domain of its CDI devices."""

_KIND: Final = f"{DRIVER}/claim"

# The kubelet gives a call 45 s, of which a slow disk may take some.
PATIENCE: Final = 30.0
"""Seconds that a claim is waited for."""

_WRITING: Final = 10.0  # seconds
_ANSWERING: Final = 1.0  # seconds until an answer is sent
_LOOK_AGAIN: Final = 0.1  # seconds, while a claim is waited for


@dataclass(eq=False)
class ClaimNotHandedOver(HostError):
    """The agent has not handed over a claim that the kubelet asks for."""

    claim: ClaimName
    why: str

    def __str__(self) -> str:
        title = f"claim {self.claim.namespace}/{self.claim.name}"
        return f"{title}: its allocation is not known here: {self.why}"


@dataclass(eq=False)
class CannotKeepClaims(InputError):
    """The daemon was started without what a DRA driver needs."""

    flag: str

    def __str__(self) -> str:
        return f"$.spec.dra.enabled: claims need {self.flag}"


class ClaimDesk:
    """Prepares claims and takes them back, as the kubelet asks for.

    Args:
        daemon: The parts of the daemon.
        writer: Writes the state.
        spool: The folder of the agent.
        cdi: The files for the runtime.
        patience: Seconds that a claim is waited for.
    """

    def __init__(
        self,
        daemon: Daemon,
        writer: CheckpointWriter,
        spool: SpoolFolder,
        cdi: CdiFiles,
        patience: float = PATIENCE,
    ) -> None:
        self._policy = daemon.policy
        self._history = daemon.observers.history
        self._cluster: Callable[[], ClusterStatus | None] = lambda: (
            daemon.configuration.cluster.status
            if daemon.configuration.cluster
            else None
        )
        self._writer = writer
        self._spool = spool
        self._cdi = cdi
        self._patience = patience
        self._node = ""
        # One after the other: the files of a claim follow its decisions.
        self._lock = asyncio.Lock()
        self.wanted: dict[str, ClaimName] = {}

    @property
    def claims(self) -> Mapping[str, PreparedClaim]:
        """The prepared claims by UID."""
        return self._policy.policy.claims(self._policy.state)

    async def begin(self) -> None:
        """Write the files of all prepared claims: they may be gone."""
        async with self._lock:
            for one in self.claims.values():
                await self._write(one)
        await in_thread(self._read)

    async def rested(self) -> None:
        """Wait until calls of the kubelet have their answers."""
        while self.wanted or self._lock.locked():  # noqa: ASYNC110 - rare, and short
            await asyncio.sleep(_LOOK_AGAIN)
        await asyncio.sleep(_ANSWERING)

    async def prepare(self, claim: ClaimName) -> Sequence[PreparedDevice]:
        """See `nri_resmgr.kubelet.dra.ClaimService`."""
        self._cdi.check(claim.uid)
        if (known := self.claims.get(claim.uid)) is not None:
            wanted = known.claim
        else:
            token = secrets.token_hex(16)
            wanted = claim_of(await self._allocated(claim), token)
        async with self._lock:
            prepared = prepare_claim(self._policy, wanted)
            await self._writer.written(_WRITING)
            await self._write(prepared)
        return tuple(
            PreparedDevice(
                part.request,
                part.pool,
                part.device,
                (self._cdi.device_of(claim.uid),),
                part.share,
            )
            for part in prepared.claim.parts
        )

    async def unprepare(self, claim: ClaimName) -> None:
        """See `nri_resmgr.kubelet.dra.ClaimService`."""
        async with self._lock:
            return_claim(self._policy, claim.uid)
            await self._writer.written(_WRITING)
            await in_thread(partial(self._cdi.remove, claim.uid))

    def devices(self) -> Sequence[tuple[str, str]]:
        """See `nri_resmgr.kubelet.dra.ClaimService`; none before the agent came."""
        found = self._policy.policy.claim_devices(self._policy.state)
        return [(self._node, one.name) for one in found] if self._node else []

    async def _write(self, prepared: PreparedClaim) -> None:
        claim = prepared.claim
        await in_thread(partial(self._cdi.write, claim.uid, (variable_of(claim),)))

    async def _allocated(self, claim: ClaimName) -> AllocatedClaim:
        """Ask the agent for a claim.

        Raises:
            ClaimNotHandedOver: It does not answer, or cannot have the claim.
        """
        with self._asking(claim) as ask:
            why = ""
            try:
                async with asyncio.timeout(self._patience):
                    while True:
                        found, why = await in_thread(self._read)
                        if ask in found:
                            break
                        await asyncio.sleep(_LOOK_AGAIN)
            except TimeoutError:
                raise ClaimNotHandedOver(claim, why or self._why_silent()) from None
        allocated = found[ask]
        if (allocated.namespace, allocated.name, allocated.uid) != (
            claim.namespace,
            claim.name,
            claim.uid,
        ):
            raise ClaimNotHandedOver(claim, f"the agent answers for {allocated.title}")
        return allocated

    @contextmanager
    def _asking(self, claim: ClaimName) -> Iterator[str]:
        # A claim can be allocated anew under the same UID: an old answer is none.
        ask = secrets.token_hex(8)
        self.wanted[ask] = claim
        self._history.note("claim.wanted", f"claim {claim.namespace}/{claim.name}")
        try:
            yield ask
        finally:
            del self.wanted[ask]

    def _read(self) -> tuple[Mapping[str, AllocatedClaim], str]:
        """Return what the agent has handed over, by ask, and why it is not usable."""
        try:
            content = self._spool.read()[CLAIMS]
            if content is None:
                return {}, ""
            if not isinstance(content, bytes):
                return {}, str(content)
            file = decode(content)
            self._node = file.header.node
            return read_claims(file.body), ""
        except (HostError, BadSpoolFile, InputError) as error:
            return {}, str(error)

    def _why_silent(self) -> str:
        status = self._cluster()
        if status is None or status.agent is None:
            return "no agent has come forward; does nri-resmgr agent run on this node?"
        if status.agent.problem:
            return f"the agent says: {status.agent.problem}"
        return (
            f"the agent of node {status.agent.node} does not answer; does its version "
            "know claims, and does its role have get for resourceclaims?"
        )


class DraDriver:
    """The driver while it serves.

    Args:
        daemon: The parts of the daemon.
        kubelet: The kubelet's root directory.

    Attributes:
        name: Name of the driver.
        desk: Prepares claims.
        plugin: Serves the kubelet.

    Raises:
        CannotKeepClaims: The daemon has no state directory or no spool folder.
        SocketPathTooLong: Sockets cannot be below the kubelet's directory.
    """

    name = DRIVER

    def __init__(self, daemon: Daemon, kubelet: Path) -> None:
        options = daemon.options
        if daemon.checkpoint_writer is None:
            raise CannotKeepClaims("--state-dir")
        if not options.spool:
            raise CannotKeepClaims("--spool")
        spool = SpoolFolder(options.spool, (CLAIMS,))
        cdi = CdiFiles(Path(options.cdi_dir), _KIND)
        self.desk = ClaimDesk(daemon, daemon.checkpoint_writer, spool, cdi)
        self.plugin = DraPlugin(DRIVER, PluginPaths.of(kubelet, DRIVER), self.desk)

    @property
    def problem(self) -> str:
        """Why the kubelet does not use it; empty while it does."""
        found = self.plugin.registration
        return "" if found.is_registered else f"not registered: {found.why_not}"

    @property
    def wanted(self) -> Mapping[str, ClaimName]:
        """The claims that wait for the agent, by ask."""
        return self.desk.wanted


async def serve_dra(daemon: Daemon, kubelet: Path, until: Callable[[], bool]) -> None:
    """Serve the driver until *until*, which is looked at when something happens.

    Raises:
        ResmgrError: It cannot be served.
    """
    driver, history = DraDriver(daemon, kubelet), daemon.observers.history
    await driver.desk.begin()
    daemon.dra = driver
    try:
        async with driver.plugin.serving():
            while True:
                while not until():
                    await history.more(history.last)
                await driver.desk.rested()
                if until():
                    return
    finally:
        daemon.dra = None
