"""Converts the settings of the kubelet's CPU, memory and topology managers."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.migrate.converted import NO_PINS, Converted
from nri_resmgr.config.migrate.section import Note, Section
from nri_resmgr.values import BadQuantity, parse_cpus
from nri_resmgr.values.documents import JsonObject

KIND: Final = "KubeletConfiguration"

_NONE: Final = "none"
_ALIGNED: Final = ("best-effort", "restricted", "single-numa-node")

_ORIGIN: Final = (
    "Converted from a KubeletConfiguration. In that file, set cpuManagerPolicy: none,",
    "memoryManagerPolicy: None and topologyManagerPolicy: none, remove the options of",
    "these policies, and remove cpu_manager_state and memory_manager_state from",
    "/var/lib/kubelet before the kubelet is restarted. All its other settings stay.",
)

_STRICT: Final = "strict-cpu-reservation"
_CPU_OPTIONS: Final = {
    "full-pcpus-only": "whole cores are preferred here, not required; the annotation "
    "hide-hyperthreads keeps the other threads of its cores unused by a container",
    "distribute-cpus-across-numa": "CPUs are packed here; the annotation "
    "pick-resources-by-hints spreads them over the devices of a container",
    "align-by-socket": "TopologyAwarePolicy has a pool for each socket, and prefers "
    "smaller pools where the request fits",
    "distribute-cpus-across-cores": "BalloonsPolicy has preferSpreadOnPhysicalCores",
    "prefer-align-cpus-by-uncorecache": "the CPU allocator always prefers few caches",
}
_TOPOLOGY_OPTIONS: Final = {
    "prefer-closest-numa-nodes": "pools consist of nodes that are close to each other",
    "max-allowable-numa-nodes": "there is no such limit here",
}
_REFUSED: Final = (
    "the policy places containers in the smallest pool where they fit, and refuses "
    "none that need a larger one; the annotation strict.topologyhints refuses those "
    "that are not close to their devices"
)
_NOTHING_PINNED: Final = (
    "no manager of this kubelet pins containers, and this document pins none either"
)
_SHARED_RESERVED: Final = (
    "reserved CPUs are shared by all containers in StaticPolicy; TopologyAwarePolicy "
    "keeps them for reserved namespaces"
)
_RESERVED_MEMORY: Final = "memory is not reserved by node; remove it with the policy"
_OF_RESERVED_CPUS: Final = "reservedSystemCPUs takes precedence, as in the kubelet"


def convert_kubelet(document: object) -> Converted:
    """Convert a KubeletConfiguration.

    Source:
        Kubernetes, KubeletConfiguration v1beta1, and the managers' documentation.

    Raises:
        BadSetting: A setting of a manager is not as the kubelet documents it.
        BadResult: Likewise.
    """
    notes: list[Note] = []
    top = Section(document, "$", notes)
    cpu = _choice(top, "cpuManagerPolicy", (_NONE, "static"))
    memory = _choice(top, "memoryManagerPolicy", ("None", "Static"))
    topology = _choice(top, "topologyManagerPolicy", (_NONE, *_ALIGNED))
    scope = _choice(top, "topologyManagerScope", ("container", "pod"))
    is_aligned = topology != _NONE
    pins = {"pinCPU": cpu == "static", "pinMemory": memory == "Static"}
    reserved = _reserved(top)
    if is_aligned:
        kind, spec = "TopologyAwarePolicy", {**reserved, **pins}
        if scope == "pod":
            # Both other policies refuse what they cannot align.
            is_strict = topology != "best-effort"
            spec["placePods"] = "strict" if is_strict else "soft"
        if topology != "best-effort":
            top.note("topologyManagerPolicy", _REFUSED)
    elif any(pins.values()):
        kind, spec = "StaticPolicy", {**reserved, **pins}
    else:
        kind, spec = NO_PINS, {}
        top.note("cpuManagerPolicy", _NOTHING_PINNED)
    _note_options(top, kind)
    return Converted(_ORIGIN, kind, spec, notes)


def _choice(top: Section, key: str, choices: tuple[str, ...]) -> str:
    """Read one of *choices*, the first of which is the default."""
    found = top.text(key, choices[0]) or choices[0]
    if found not in choices:
        raise BadSetting(top.at(key), f"{found!r} is not {' or '.join(choices)}")
    return found


def _reserved(top: Section) -> JsonObject:
    cpus = top.text("reservedSystemCPUs", "")
    total = 0
    for key in ("kubeReserved", "systemReserved"):
        amounts = top.section(key)
        amount = amounts.take("cpu")
        if amount is None:
            continue
        try:
            total += parse_cpus(str(amount))
        except BadQuantity as error:
            raise BadSetting(amounts.at("cpu"), str(error)) from None
        if cpus:
            amounts.note("cpu", _OF_RESERVED_CPUS)
    if cpus:
        return {"reservedResources": {"cpu": f"cpuset:{cpus}"}}
    # Thousandths are rounded up to whole CPUs, here as in the kubelet.
    return {"reservedResources": {"cpu": f"{total}m"}} if total else {}


def _note_options(top: Section, kind: str) -> None:
    top.give_up("cpuManagerReconcilePeriod", "the flag --verify-interval of `run`")
    top.give_up("reservedMemory", _RESERVED_MEMORY)
    options = top.section("cpuManagerPolicyOptions")
    strict = {_STRICT: _SHARED_RESERVED} if kind == "StaticPolicy" else {_STRICT: ""}
    _note_enabled(options, _CPU_OPTIONS | strict)
    _note_enabled(top.section("topologyManagerPolicyOptions"), _TOPOLOGY_OPTIONS)


def _note_enabled(options: Section, known: dict[str, str]) -> None:
    for key, why in known.items():
        # Without a reason, the option is what the policy always does.
        if str(options.take(key) or "false").lower() != "false" and why:
            options.note(key, why)
    options.note_rest("unknown option")
