"""Converts configurations of CRI Resource Manager, in files and in ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nri_resmgr.config.errors import BadSetting, BadSyntax
from nri_resmgr.config.migrate.cmk_pools import KIND as STATIC_POOLS_KIND
from nri_resmgr.config.migrate.cmk_pools import read_static_pools
from nri_resmgr.config.migrate.converted import NO_PINS, Converted
from nri_resmgr.config.migrate.cri_rm_balloons import read_balloons
from nri_resmgr.config.migrate.cri_rm_control import read_control
from nri_resmgr.config.migrate.cri_rm_dynamic_pools import read_dynamic_pools
from nri_resmgr.config.migrate.cri_rm_observability import read_observability
from nri_resmgr.config.migrate.cri_rm_podpools import read_podpools
from nri_resmgr.config.migrate.section import Note, Section
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.values.documents import JsonObject

# The first words of module names.
_MODULES: Final = (
    *("policy", "resource-manager", "rdt", "blockio", "cpu"),
    *("logger", "instrumentation", "dump"),
)

_NONE: Final = "none"
_SAME: Final = ("topology-aware", "memtier")
_BALLOONS: Final = "balloons"
_DYNAMIC_POOLS: Final = "dynamic-pools"
_PODPOOLS: Final = "podpools"
_STATIC_POOLS: Final = "static-pools"
_KINDS: Final = {
    "topology-aware": "TopologyAwarePolicy",
    "memtier": "TopologyAwarePolicy",
    _BALLOONS: "BalloonsPolicy",
    _DYNAMIC_POOLS: "DynamicPoolsPolicy",
    _PODPOOLS: "PodpoolsPolicy",
    "static": "StaticPolicy",
    "static-plus": "StaticPlusPolicy",
    _STATIC_POOLS: STATIC_POOLS_KIND,
}

_ORIGIN: Final = "Converted from a configuration of CRI Resource Manager."

_NO_CPUS: Final = "a policy that pins nothing has no use for it"
_LISTED_CPUS: Final = "had no effect in this policy: the pools list their CPUs"

_TOPOLOGY_AWARE: Final = {
    "ReservedPoolNamespaces": "reservedPoolNamespaces",
    "PinCPU": "pinCPU",
    "PinMemory": "pinMemory",
    "PreferIsolatedCPUs": "preferIsolatedCPUs",
    "PreferSharedCPUs": "preferSharedCPUs",
    "ColocatePods": "colocatePods",
    "ColocateNamespaces": "colocateNamespaces",
}
_DEMOTION: Final = "pages are not moved between kinds of memory here"
_PAGE_KEYS: Final = ("DirtyBitScanPeriod", "PageMovePeriod", "PageMoveCount")
_RDT: Final = "had no effect in CRI Resource Manager; classes are in control.rdt"
_RESOURCE_FILE: Final = (
    "the file resources.sh of each container is in /.nri-resource-policy; the flag "
    "--resource-path /.cri-resmgr of `run` keeps its folder"
)
_PUBLISHING: Final = ("StaticPolicy", "StaticPlusPolicy", "TopologyAwarePolicy")

_UNKNOWN: Final = "unknown key"
_NRI_RESMGR: Final = ("nri-resmgr-config", "nri-resource-policy-config")
_BY_PROGRAM: Final = (
    "each policy was a program of its own there: the options are those of {active}; if "
    "another one ran, write policy.Active into the data"
)
_INACTIVE: Final = "not of the active policy"


def has_modules(document: Mapping[str, object]) -> bool:
    """Return whether a mapping is a configuration of CRI Resource Manager.

    Unknown modules do not matter: they are noted when it is converted.
    """
    words = {str(key).partition(".")[0] for key in document}
    # Names of some modules are common words, so others must not be beside them.
    return "policy" in words or (bool(words) and words <= set(_MODULES))


def convert_cri_rm(
    document: Mapping[str, object], path: str = "$", *, has_active: bool = True
) -> Converted:
    """Convert a configuration, all modules of which are in one mapping.

    Args:
        document: The mapping.
        path: Its place.
        has_active: Whether it names its policy; nri-resmgr, which came in between, had
            a program for each, and is read by the options that are there.

    Raises:
        BadSetting: It is not one that CRI Resource Manager accepts.
        BadResult: Likewise.
    """
    notes: list[Note] = []
    top = Section(_nested(document, path), path, notes)
    policy = top.section("policy")
    active = policy.text("Active", _NONE if has_active else "")
    if not active:
        active = _of_options(policy)
        policy.note("Active", _BY_PROGRAM.format(active=active))
    spec: JsonObject = {}
    for theirs, ours in (
        ("AvailableResources", "availableResources"),
        ("ReservedResources", "reservedResources"),
    ):
        spec |= _cpus(policy.section(theirs, any_case=True), ours)
    if active in (_NONE, _STATIC_POOLS):
        for key in spec:
            why = _NO_CPUS if active == _NONE else _LISTED_CPUS
            policy.note(f"{key[0].upper()}{key[1:]}", why)
        spec = {}
    if active in _KINDS:
        kind = _KINDS[active]
        if kind in _PUBLISHING:
            policy.note("Active", _RESOURCE_FILE)
    elif active == _NONE:
        kind = NO_PINS
    else:
        known = " or ".join((*_KINDS, _NONE))
        raise BadSetting(policy.at("Active"), f"expected {known}, not {active!r}")
    # Either name may be that of the options, whichever is active.
    names = (active, *_SAME) if active in _SAME else (active,)
    options = policy.section(next((n for n in names if n in policy.names), active))
    if active == _STATIC_POOLS:
        spec |= read_static_pools(options, policy)
    _options_of(active, options, spec)
    options.note_rest(_UNKNOWN)
    policy.note_rest(_INACTIVE)
    has_classes = active in (_BALLOONS, _DYNAMIC_POOLS)
    control = read_control(top, spec if has_classes else None)
    if control:
        spec["control"] = control
    spec |= read_observability(top)
    top.note_rest("unknown module")
    return Converted([_ORIGIN], kind, spec, notes)


def convert_data(data: Mapping[str, object], name: str) -> Converted:
    """Convert the data of a ConfigMap: the text of each module, by its name.

    Raises:
        BadSetting: As `convert_cri_rm`, or a module is not YAML.
        BadResult: As `convert_cri_rm`.
    """
    modules: dict[str, object] = {}
    for key, text in data.items():
        path = f"$.data.{key}"
        if not isinstance(text, str):
            raise BadSetting(path, "expected text")
        try:
            modules[key] = parse_yaml(text)
        except BadSyntax as error:
            raise BadSetting(path, str(error)) from None
    has_active = not name.startswith(_NRI_RESMGR)
    found = convert_cri_rm(modules, "$.data", has_active=has_active)
    origin = (*found.origin, f"It is the ConfigMap {name}.") if name else found.origin
    return Converted(origin, found.kind, found.spec, found.notes)


def _of_options(policy: Section) -> str:
    """Return the policy of which there are options; the topology-aware one if none."""
    return _BALLOONS if _BALLOONS in policy.names else _SAME[0]


def _nested(document: Mapping[str, object], path: str) -> JsonObject:
    """Write dotted names of modules, such as ``policy.static``, as nested mappings."""
    tree: JsonObject = {}
    for key, value in document.items():
        module: object = value
        for word in reversed(str(key).split(".")):
            module = {word: module}
        _merge(tree, module, path)
    return tree


def _merge(tree: JsonObject, more: Any, path: str) -> None:
    for key, value in more.items():
        here = f"{path}.{key}"
        if key not in tree:
            tree[key] = dict(value) if isinstance(value, Mapping) else value
        elif isinstance(tree[key], dict) and isinstance(value, Mapping):
            _merge(tree[key], value, here)
        elif value is not None:
            raise BadSetting(here, "twice in this document, dotted and nested")


def _cpus(resources: Section, ours: str) -> JsonObject:
    found = resources.take("CPU")
    resources.note_rest("only CPUs can be named here, as in CRI Resource Manager")
    if isinstance(found, str):
        found = _qualified(found.strip())
    return {} if found is None else {ours: {"cpu": found}}


def _qualified(text: str) -> str:
    """Write what CRI Resource Manager recognizes by its characters with a prefix."""
    if ":" in text:
        return text
    if text.startswith("/"):
        return f"cgroup:{text}"
    return f"cpuset:{text}" if "-" in text or "," in text else text


def _options_of(active: str, options: Section, spec: JsonObject) -> None:
    """Read the options of the active policy into *spec*."""
    if _KINDS.get(active) == "TopologyAwarePolicy":
        spec |= options.copy(_TOPOLOGY_AWARE)
        for key in _PAGE_KEYS:
            options.give_up(key, _DEMOTION)
    elif active == _BALLOONS:
        spec |= read_balloons(options)
    elif active == _DYNAMIC_POOLS:
        spec |= read_dynamic_pools(options)
    elif active == _PODPOOLS:
        spec |= read_podpools(options)
    elif active == "static":
        options.give_up("Rdt", _RDT)
        spec |= options.copy({"RelaxedIsolation": "relaxedIsolation"})
        # There, any container with too few ordinary CPUs got isolated ones, too.
        spec["borrowIsolatedCPUs"] = True
