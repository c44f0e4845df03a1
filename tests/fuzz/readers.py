"""Everything that reads what others wrote: text in, a value or an error of ours out."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import attrs
import msgspec

from nri_resmgr.agent.api.answers import Answer
from nri_resmgr.agent.api.kubeconfig import access_of
from nri_resmgr.agent.api.news import Target
from nri_resmgr.agent.api.resources import CONFIG_MAPS
from nri_resmgr.agent.api.watch import WatchMachine
from nri_resmgr.app.adjustments.read import read_adjustments
from nri_resmgr.app.annotations import Refused, read_preferences
from nri_resmgr.app.plugin.changes.adjusting import adjust
from nri_resmgr.app.plugin.cpu_claims import variables_in
from nri_resmgr.app.plugin.resource_policy import ResourcePolicy
from nri_resmgr.app.requests.amounts import Misplaced
from nri_resmgr.app.requests.kubelet import requests_in
from nri_resmgr.app.requests.webhook import read_resources
from nri_resmgr.checkpoint.decode import read_checkpoint
from nri_resmgr.config.migrate import convert_text
from nri_resmgr.config.mistakes import check_document
from nri_resmgr.control.http_request import read_head
from nri_resmgr.daemon.claims_file import parse_claims
from nri_resmgr.daemon.configuration_cache import decode, encode
from nri_resmgr.host.cgroups.cpuset import cpus_of_cgroup
from nri_resmgr.host.cpu_time import busy_between, read_ticks
from nri_resmgr.host.kubelet import static_managers
from nri_resmgr.host.machine.discovery import read_machine
from nri_resmgr.host.machine.hotplug import read_fingerprint
from nri_resmgr.host.machine.nodes import used_memory
from nri_resmgr.host.machine.sysfs_writer import sysfs_files
from nri_resmgr.host.mounts import MountTable
from nri_resmgr.host.pressure import read_pressure
from nri_resmgr.host.recorded import RecordedTree
from nri_resmgr.kubectl.redact import redact_text
from nri_resmgr.kubelet.pod_reader import read_pod
from nri_resmgr.log.levels import LogLevels
from nri_resmgr.policies import parse_config, read_config
from nri_resmgr.recordings.text import entry_line, load_recording, read_entries
from nri_resmgr.scenario.manifests import read_workload
from nri_resmgr.scenario.node import InProcessNode
from nri_resmgr.scenario.play import Player
from nri_resmgr.scenario.replay import Replay
from nri_resmgr.sdk.settings import Settings
from nri_resmgr.spool import decode as decode_spool
from nri_resmgr.spool import encode as encode_spool
from nri_resmgr.testing.recording import parse_session
from nri_resmgr.topology.document import from_document, to_document
from nri_resmgr.topology.synthetic import parse_spec
from nri_resmgr.values import CpuSet, ResmgrError
from nri_resmgr.webhook.checks import AnnotationChecks, KnownNames
from nri_resmgr.webhook.pods import Form
from nri_resmgr.webhook.review import answer_review, mutate
from nri_resmgr.webhook.x509 import first_validity
from tests.fuzz import samples


@attrs.frozen(eq=False)
class Reader:
    """One of them.

    Attributes:
        read: Takes a text; what it raises beside `ResmgrError` is a bug.
        samples: Good texts.
    """

    read: Callable[[str], object]
    samples: Callable[[], Iterable[str]]


def _of_bundle(text: str) -> None:
    redacted = redact_text(text)
    assert redact_text(redacted) == redacted


def _configuration(text: str) -> None:
    mistakes = check_document(text, read_config, lambda _: None).mistakes
    try:
        config = parse_config(text)
    except ResmgrError:
        assert mistakes, "check accepts what the daemon refuses"
    else:
        assert not mistakes, "check refuses what the daemon accepts"
        ResourcePolicy(samples.MACHINE, config).synchronize([], [])


def _annotation(text: str) -> None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(given, dict) or not all(
        isinstance(v, str) for v in given.values()
    ):
        return
    reading = read_preferences(given, "c", refuse=Refused.NONE, testing=True)
    policy = samples.busy_policy("TopologyAwarePolicy")
    before = policy.state
    with contextlib.suppress(ResmgrError):
        policy.create_container(samples.pod("new", given), samples.container("new"))
        policy.stop_container(samples.pod("new"), samples.container("new"))
    assert policy.state.ledger == before.ledger
    assert all(len(one.why) <= _SENTENCE for one in reading.problems)


def _resources(text: str) -> None:
    with contextlib.suppress(Misplaced):  # its own, and turned into a warning
        read_resources(text)


def _kubelets_pod(text: str) -> None:
    content = text.encode("latin-1", "replace")
    if (pod := read_pod(content)) is not None:
        # What is kept is in proportion to what came.
        assert pod.size <= 4096 + 200 * len(content) + 800 * len(pod.containers)
        with contextlib.suppress(Misplaced):
            requests_in(pod)


def _checkpoint(kind: str, body: str) -> None:
    policy = samples.busy_policy(kind)
    restored = read_checkpoint(samples.sealed(body, kind)).state_for(policy.policy)
    again = ResourcePolicy(samples.MACHINE, policy.config)
    again.engine.restore_from(lambda _: restored.state)
    names = ("a", "b", "new")
    again.synchronize(
        [samples.pod(one) for one in names], [samples.container(one) for one in names]
    )
    assert set(again.state.ledger.entries) == set(names)
    check_exclusive(again)


def check_exclusive(policy: ResourcePolicy) -> None:
    """Check that no container runs on another's exclusive CPUs, by pins alone."""
    pools = policy.policy.pools(policy.state)
    own = CpuSet.union(pool.exclusive for pool in pools)
    pins = [one.cpus & own for one in policy.policy.pins(policy.state).values()]
    assert sum(map(len, pins)) == len(CpuSet.union(pins))


def _recording(text: str) -> None:
    found = load_recording(iter(text.splitlines(keepends=True)), "rec")
    lines = [entry_line(one) for one in found.entries]
    assert tuple(read_entries(iter(lines), "rec")) == found.entries
    asyncio.run(_replay(found))


async def _replay(found: Any) -> None:
    await Replay(found.header, found.entries[:20]).run()


def _scenario(text: str) -> None:
    found = read_workload(text)
    machine = parse_spec(found.machine or "2s2n2c2t")
    short = [one for one in found.steps[:20] if getattr(one, "replicas", 1) < _MANY]
    Player(InProcessNode(machine, found.document)).play(
        msgspec.structs.replace(found, steps=tuple(short))
    )


def _head(text: str) -> None:
    read_head(text.encode("utf-8", "surrogateescape"))


def _review(text: str) -> None:
    checks = AnnotationChecks(KnownNames(cpu=(), rdt=("gold",)))
    for judge in (partial(mutate, form=Form.NRI_PLUGINS), checks.judge):
        answer_review(text.encode(errors="surrogatepass"), judge)


def _spool(text: str) -> None:
    found = decode_spool(text.encode("utf-8", "surrogateescape"))
    assert decode_spool(encode_spool(found.header, found.body)) == found


def _adjustments(text: str) -> None:
    found = read_adjustments(text, "worker-1")
    policy = samples.busy_policy("TopologyAwarePolicy")
    before = policy.state
    here = [one.adjustment for one in found if one.adjustment is not None]
    if adjust(policy, here).errors:
        assert policy.state is before
    adjust(policy, [])


def _cache(text: str) -> None:
    document = decode(text)
    assert encode(document) == text


def _machine(text: str) -> None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    found = from_document(document)
    assert from_document(to_document(found)) == found


def _host_file(path: str, use: Callable[[RecordedTree], object], text: str) -> None:
    host = _host()
    use(RecordedTree({**host.files, path: text.strip()}, host.links))


@cache
def _host() -> RecordedTree:
    return sysfs_files(samples.MACHINE)


def _kubeconfig(text: str) -> None:
    access_of(text.encode("utf-8", "surrogateescape"), Path("/root/.kube/config"))


def _watch(text: str) -> None:
    body = text.encode("utf-8", "surrogateescape")
    machine = WatchMachine(Target(CONFIG_MAPS, "default"), "https://host", "a token")
    machine.start()
    for status in (200, 404, 429, 500):
        machine.answered(Answer(status, body, {"retry-after": text[:8]}), 0.5)
        machine.waited(0.5)
    machine.answered(Answer(200, b'{"metadata":{"resourceVersion":"1"}}'), 0.5)
    machine.opened()
    machine.received(body + b"\n", 1.0, 0.5)


def _level(text: str) -> None:
    levels = LogLevels()
    pattern, _, level = text.partition("=")
    before = levels.as_data()
    try:
        levels.set(pattern, level)
    except ResmgrError:
        assert levels.as_data() == before
        raise


def _mounts(tree: RecordedTree) -> None:
    with contextlib.closing(MountTable(tree)) as table:
        table.device_of("/var/lib/kubelet/pods/x/volumes/y")


_MANY: Final = 10  # replicas
_SENTENCE: Final = 500  # characters that a person reads, and the history keeps

_FILES: Final[Mapping[str, tuple[Callable[[Any], object], str]]] = {
    "/sys/fs/cgroup/x/cpuset.cpus.effective": (
        lambda tree: cpus_of_cgroup(tree, "x"),
        "0-3,8-11",
    ),
    "/proc/pressure/cpu": (
        read_pressure,
        "some avg10=0.12 avg60=1.00 avg300=0.10 total=5\nfull avg10=0.00 avg60=0.0",
    ),
    "/sys/devices/system/node/node0/meminfo": (
        lambda tree: (used_memory(tree, 0), read_machine(tree)),
        "Node 0 MemTotal:  1048576 kB\nNode 0 MemUsed:  524288 kB",
    ),
    "/var/lib/kubelet/config.yaml": (
        static_managers,
        "kind: KubeletConfiguration\ncpuManagerPolicy: static\n",
    ),
    "/var/lib/kubelet/cpu_manager_state": (
        static_managers,
        '{"policyName":"static","defaultCpuSet":"0-3","entries":{},"checksum":1}',
    ),
    "/proc/stat": (
        lambda tree: busy_between({0: (1, 2)}, read_ticks(tree)),
        "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5\nintr 7",
    ),
    "/proc/zoneinfo": (
        read_fingerprint,
        "Node 0, zone      DMA\n  present  3998\n  managed  3840\n",
    ),
    "/proc/1/mountinfo": (
        _mounts,
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n25 22 0:23 / /var rw - tmpfs tmpfs rw",
    ),
    "/sys/devices/system/cpu/online": (read_machine, "0-15"),
    "/sys/devices/system/node/has_memory": (read_machine, "0-4"),
    "/sys/devices/system/cpu/cpu1/cache/index0/size": (read_machine, "32K"),
}


def _of_host(path: str) -> Reader:
    use, sample = _FILES[path]
    return Reader(partial(_host_file, path, use), lambda: (sample,))


class _Pool(Settings, frozen=True):
    cpus: Annotated[int, msgspec.Meta(ge=1)]
    kind: Literal["shared", "exclusive"] = "shared"


class _PluginSettings(Settings, frozen=True):
    log_file: str = ""
    pools: tuple[_Pool, ...] = ()
    by_space: dict[str, _Pool | None] = msgspec.field(default_factory=dict)
    weights: dict[int, float] | None = None


_PLUGIN_SETTINGS: Final = (
    "logFile: /a\npools: [{cpus: 1}, {cpus: 2, kind: exclusive}]",
    "bySpace: {shop: {cpus: 3}, lab: null}\nweights: {1: 0.5, 2: 1}",
)


def _variables(text: str) -> None:
    variables_in(text.split("\n"), CpuSet.parse("0-63"))


def _of_checkpoint(kind: str) -> Reader:
    lines = partial(samples.checkpoint_lines, kind)
    return Reader(partial(_checkpoint, kind), lambda: ("".join(lines()),))


READERS: Final[Mapping[str, Reader]] = {
    "configuration": Reader(_configuration, samples.documents),
    "foreign configuration": Reader(
        lambda text: convert_text(text, read_config), samples.foreign
    ),
    "annotations": Reader(_annotation, samples.annotated),
    "resources": Reader(_resources, lambda: samples.RESOURCES),
    "the kubelet's pod": Reader(_kubelets_pod, samples.kubelets_pods),
    **{f"checkpoint of {kind}": _of_checkpoint(kind) for kind in samples.KINDS},
    "checkpoint": Reader(read_checkpoint, samples.checkpoints),
    "claims": Reader(parse_claims, lambda: (samples.CLAIMS,)),
    "variables of claims": Reader(_variables, lambda: samples.VARIABLES),
    "recording": Reader(_recording, lambda: ("".join(samples.recording()),)),
    "recorded session": Reader(
        lambda text: parse_session(text, "rec"), lambda: (samples.SESSION,)
    ),
    "scenario": Reader(_scenario, samples.scenarios),
    "machine": Reader(_machine, lambda: (samples.machine_text(),)),
    "machine in words": Reader(parse_spec, lambda: samples.MACHINES),
    "request": Reader(_head, lambda: samples.HEADS),
    "spool file": Reader(_spool, lambda: (samples.SPOOLED,)),
    "adjustments": Reader(_adjustments, lambda: samples.ADJUSTMENTS),
    "cached document": Reader(_cache, lambda: (encode(samples.CACHED),)),
    "kubeconfig": Reader(_kubeconfig, lambda: samples.KUBECONFIGS),
    "watch": Reader(_watch, lambda: samples.WATCHES),
    "review": Reader(_review, lambda: samples.REVIEWS),
    "certificate": Reader(first_validity, lambda: (samples.CERTIFICATE,)),
    "settings of a plugin": Reader(_PluginSettings.read, lambda: _PLUGIN_SETTINGS),
    "text of a bundle": Reader(_of_bundle, lambda: samples.WITH_SECRETS),
    "log level": Reader(_level, lambda: ("stub.*=debug", "*=info")),
    **{path: _of_host(path) for path in _FILES},
}
