"""Each published file is what a recount from all pins says, after every event."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nri_resmgr.app.observers.observer import PolicyDecision
from nri_resmgr.app.plugin.container_files import ContainerFiles
from nri_resmgr.app.plugin.engine import Engine
from nri_resmgr.config import PolicyConfig
from nri_resmgr.host.resource_files import ResourceFiles
from nri_resmgr.policies import parse_config
from nri_resmgr.policy.events import (
    ContainerSpec,
    Created,
    Event,
    PodStopped,
    Removed,
    Stopped,
    Synchronized,
    Updated,
)
from nri_resmgr.policy.pool_request import PoolRequest
from nri_resmgr.policy.preferences import Preferences
from nri_resmgr.stub import Container
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import (
    NO_CPUS,
    CpuSet,
    MilliCpus,
    NodeSet,
    PolicyError,
    QosClass,
)
from tests.examples import steps

MACHINE = parse_spec("1s2n4c1t isolated=6-7")
TYPE = "{name: a, namespaces: [default], maxCPUs: 2, shareIdleCPUsInSame: numa}"
PACKED = "{name: b, namespaces: [other], preferNewBalloons: true}"
LISTS = '{name: e, exclusive: true, cpuLists: [{cpus: "0-1"}, {cpus: "6-7"}]}'
DOCUMENTS = [
    ("TopologyAwarePolicy", "{reservedResources: {cpu: '1'}}"),
    ("TopologyAwarePolicy", "{reservedResources: {cpu: '1'}, pinCPU: false}"),
    ("TopologyAwarePolicy", "{reservedResources: {cpu: '1'}, pinMemory: false}"),
    ("BalloonsPolicy", "{reservedResources: {cpu: '1'}}"),
    (
        "BalloonsPolicy",
        f"{{reservedResources: {{cpu: '1'}}, balloonTypes: [{TYPE}, {PACKED}]}}",
    ),
    ("StaticPolicy", "{relaxedIsolation: true, onFailure: shared}"),
    ("StaticPlusPolicy", "{onFailure: shared}"),
    ("StaticPoolsPolicy", f"{{pools: [{LISTS}]}}"),
    ("PodpoolsPolicy", "{pools: [{name: a, cpu: 2, instances: 1, maxPods: 1}]}"),
    ("DynamicPoolsPolicy", "{pools: [{name: a, namespaces: [other]}]}"),
]
IDS = st.sampled_from("abcdef")
AMOUNTS = st.sampled_from([0, 200, 1000, 1000, 1500, 2000, 3000])


class FilesFollow(RuleBasedStateMachine):
    """Lets a policy decide, and the files follow."""

    @initialize(document=st.sampled_from(DOCUMENTS))
    def begin(self, document: tuple[str, str]) -> None:
        """Take a policy."""
        self.folder = Path(tempfile.mkdtemp())
        self.engine = Engine(MACHINE, config_of(document))
        self.files = ContainerFiles(ResourceFiles(f"{self.folder}/run"), self.engine)

    @rule(
        name=IDS,
        milli=AMOUNTS,
        qos=st.sampled_from(QosClass),
        pod=st.sampled_from("pq"),
        namespace=st.sampled_from(["default", "other", "kube-system"]),
        pool=st.sampled_from(["", "a", "e"]),
    )
    def create(  # noqa: PLR0913, PLR0917 - each is drawn
        self,
        name: str,
        milli: int,
        qos: QosClass,
        pod: str,
        namespace: str,
        pool: str,
    ) -> None:
        """A container is created, and gets its mount and its files."""
        amount = MilliCpus(milli)
        limit = amount if qos is QosClass.GUARANTEED else None
        spec = ContainerSpec(
            name,
            pod,
            name,
            namespace=namespace,
            qos=qos,
            request=amount,
            limit=limit,
            preferences=Preferences(pod_pool=pool),
            pool_request=PoolRequest(pool),
        )
        if name not in self.engine.state.ledger:
            self.decide(Created(spec))

    @rule(name=IDS, milli=AMOUNTS)
    def update(self, name: str, milli: int) -> None:
        """A container asks for another amount."""
        entry = self.engine.state.ledger.entries.get(name)
        if entry is not None:
            limit = None if entry.spec.limit is None else MilliCpus(milli)
            self.decide(
                Updated(
                    msgspec.structs.replace(
                        entry.spec, request=MilliCpus(milli), limit=limit
                    )
                )
            )

    @rule(name=IDS, stops=st.booleans())
    def remove(self, name: str, stops: bool) -> None:  # noqa: FBT001 - drawn by name
        """A container stops, or is removed without that."""
        self.decide(Stopped(name) if stops else Removed(name))

    @rule(pod=st.sampled_from("pq"))
    def stop_pod(self, pod: str) -> None:
        """A pod stops with all that is in it."""
        self.decide(PodStopped(pod))

    @rule(document=st.sampled_from(DOCUMENTS))
    def reconfigure(self, document: tuple[str, str]) -> None:
        """Another policy is in force."""
        decision = self.engine.rebuild(config_of(document), MACHINE, may_lose=True)
        specs = (one.spec for one in decision.state.ledger.entries.values())
        self.follow(Synchronized(tuple(specs)), decision)

    @invariant()
    def files_match_the_pins(self) -> None:
        """All CPUs of a pin are published, and exclusive ones are in no other pin."""
        if not hasattr(self, "engine"):
            return
        policy, state = pinning(self.engine.policy), self.engine.state
        pins, parts = policy.pins(state), policy.exclusive_parts(state)
        pools = [one for one in policy.pools(state) if one.kind == "balloon"]
        for name, pin in pins.items():
            own = self.published(name)
            if own is None:
                continue
            shared, isolated, exclusive, mems = own
            alone = isolated | exclusive
            assert shared | alone == pin.cpus
            if policy.kind == "TopologyAwarePolicy":
                assert mems == pin.mems
            assert not shared & alone
            assert isolated == alone & MACHINE.isolated
            others = (one.cpus for key, one in pins.items() if key != name)
            assert not alone & CpuSet.union(others)
            if policy.kind == "BalloonsPolicy":
                (pool,) = (one for one in pools if name in one.containers)
                is_alone = len(pool.containers) == 1
                assert alone == (pin.cpus & pool.cpus if is_alone else NO_CPUS)
            else:
                assert alone == parts.get(name, NO_CPUS)

    @invariant()
    def only_containers_have_folders(self) -> None:
        """Folders of removed containers are removed."""
        if hasattr(self, "engine"):
            there = {one.name for one in (self.folder / "run/containers").glob("*")}
            assert there <= self.engine.state.ledger.entries.keys()

    def decide(self, event: Event) -> None:
        try:
            decision = self.engine.decide(event)
        except PolicyError:
            return
        if isinstance(event, Created):
            mount = self.files.mount_for(Container(id=event.spec.id))
            if mount is not None:
                self.files.fill(event.spec.id)
        self.follow(event, decision)

    def follow(self, event: Event, decision: PolicyDecision) -> None:
        for _ in self.files.decided(event, decision) or ():
            pass

    def published(self, name: str) -> tuple[CpuSet, CpuSet, CpuSet, NodeSet] | None:
        """Read a file as a shell would; None where there is none."""
        path = self.folder / "run/containers" / name / "resources.sh"
        if not path.exists():
            return None
        rows = dict(line.split("=") for line in path.read_text().splitlines())
        texts = [rows.get(f"{key}_CPUS", '""') for key in _KEYS]
        shared, isolated, exclusive = (CpuSet.parse(one.strip('"')) for one in texts)
        nodes = (row for key, row in rows.items() if key.endswith("_MEMS"))
        mems = NodeSet.union(NodeSet.parse(one.strip('"')) for one in nodes)
        return shared, isolated, exclusive, mems

    def teardown(self) -> None:
        """Remove the folder."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


_KEYS = ("SHARED", "ISOLATED", "EXCLUSIVE")


def config_of(document: tuple[str, str]) -> PolicyConfig:
    kind, spec = document
    return parse_config(
        f"apiVersion: config.nri/v1alpha1\nkind: {kind}\nspec: {spec}\n"
    )


def pinning(policy: Any) -> Any:
    """Return a policy that pins what it grants: what is published is the same."""
    if policy.kind != "TopologyAwarePolicy":
        return policy
    pins = msgspec.structs.replace(policy.settings, pin_cpus=True, pin_memory=True)
    return policy.with_settings(pins)


TestFilesFollow = FilesFollow.TestCase
TestFilesFollow.settings = steps(20)
