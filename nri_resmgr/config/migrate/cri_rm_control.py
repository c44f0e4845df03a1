"""Converts the controllers of CRI Resource Manager: RDT, block I/O, CPU classes."""

from __future__ import annotations

from typing import Final

from nri_resmgr.config.errors import BadSetting
from nri_resmgr.config.migrate.cri_rm_balloons import keep_known_classes
from nri_resmgr.config.migrate.section import Section
from nri_resmgr.values.documents import JsonObject

# Of samples that are older than the last release.
_OLD_KEYS: Final = {"l3schema": "l3Allocation", "mbschema": "mbAllocation"}
_BY_QOS: Final = (
    "the last release ignored this mapping of QoS classes; name classes like the QoS "
    "classes, or by annotations of pods"
)
_RENAMED: Final = "an old name, which the last release ignored; it has an effect here"
_CONTROLLERS: Final = ("rdt", "blockio", "cpu")
_OTHERS: Final = {
    "cri": "the runtime applies what the plugin replies",
    "page-migration": "pages are not moved between kinds of memory here",
}
_MEMORY: Final = "memory"
_TOP_TIER: Final = (
    "there are no modes here: the annotation toptierlimit is obeyed where the kernel "
    "has the file, and reported elsewhere"
)
_NO_TOP_TIER: Final = (
    "limits of fast memory cannot be switched off here: remove the annotations "
    "toptierlimit"
)
_OFF: Final = ("disabled", "disable")
_ON: Final = ("required", "mandatory", "optional", "relaxed")
_MODE: Final = (
    "there are no modes here: `check` reports what a node cannot do, and only "
    "containers that name a missing class are refused"
)
_SWITCHED_OFF: Final = "its controller is disabled"
_UNKNOWN: Final = "unknown key"

_FULL: Final = "full"
_DISCOVERY: Final = "discovery"
_DISABLED: Final = "disabled"
_RESOURCES: Final = ("l2", "l3", "mb")
_NO_PARTITIONS: Final = "no partitions, so no classes"

_CPU_CLASS: Final = ("minFreq", "maxFreq", "uncoreMinFreq", "uncoreMaxFreq")
_EPP: Final = "energyPerformancePreference"
_NO_EPP: Final = "had no effect in CRI Resource Manager; here it would have one"
_NO_POOLS: Final = "only balloons and dynamic pools put CPUs into these classes"


def read_control(top: Section, pools: JsonObject | None) -> JsonObject:
    """Read all controllers into ``control`` of a spec.

    Args:
        top: The whole configuration.
        pools: The spec of the balloons or dynamic-pools policy, if one is active.
    """
    disabled = _disabled(top.section("resource-manager"))
    found: JsonObject = {}
    for name in _CONTROLLERS:
        section = top.section(name)
        if not section:
            continue
        if name in disabled:
            section.note("", _SWITCHED_OFF)
        elif name == "rdt":
            found |= _rdt(section)
        elif name == "blockio":
            found |= _blockio(section)
        elif pools is None:
            section.note("", _NO_POOLS)
        else:
            found |= _cpu(section, pools)
    return found


def _disabled(manager: Section) -> set[str]:
    """Return the names of controllers that are switched off."""
    control = manager.section("control")
    modes = control.section("Controllers")
    disabled: set[str] = set()
    for name in _CONTROLLERS:
        mode = modes.text(name, "").lower()
        if mode in _OFF:
            disabled.add(name)
        elif mode in _ON:
            modes.note(name, _MODE)
        elif mode:
            known = " or ".join((*_ON, *_OFF))
            raise BadSetting(modes.at(name), f"expected {known}, not {mode!r}")
    mode = modes.text(_MEMORY, "").lower()
    if mode in _OFF:
        modes.note(_MEMORY, _NO_TOP_TIER)
    elif mode in _ON:
        modes.note(_MEMORY, _TOP_TIER)
    elif mode:
        known = " or ".join((*_ON, *_OFF))
        raise BadSetting(modes.at(_MEMORY), f"expected {known}, not {mode!r}")
    for name, why in _OTHERS.items():
        modes.give_up(name, why)
    modes.note_rest("unknown controller")
    control.give_up("page-migration", _OTHERS["page-migration"])
    control.note_rest(_UNKNOWN)
    for name in ("rdt", "blockio"):
        manager.give_up(name, _BY_QOS)
    manager.note_rest(_UNKNOWN)
    return disabled


def _rdt(section: Section) -> JsonObject:
    options = section.section("options", any_case=True)
    mode = options.text("mode", _FULL).lower()
    if mode not in (_FULL, _DISCOVERY, _DISABLED):
        known = f"{_FULL} or {_DISCOVERY} or {_DISABLED}"
        raise BadSetting(options.at("mode"), f"expected {known}, not {mode!r}")
    is_monitored = not options.take("monitoringDisabled")
    resources = options.copy({name: name for name in _RESOURCES})
    partitions = section.section("partitions")
    options.note_rest(_UNKNOWN)
    if mode == _DISABLED:
        section.note("", "switched off by its mode")
        return {}
    if mode == _FULL and not partitions:
        section.note("", _NO_PARTITIONS)
        return {}
    found: JsonObject = {"enable": True, "usePodQoSAsDefaultClass": True}
    if is_monitored:
        found["monitorPods"] = True
        options.note(
            "monitoringDisabled", "its groups are for pods here, not for containers"
        )
    if mode == _FULL:
        found["partitions"] = parts = _renamed(partitions)
        # With a single class, CRI Resource Manager does not look for QoS classes.
        found["usePodQoSAsDefaultClass"] = _count_classes(parts) > 1
        if resources:
            found["options"] = resources
    elif partitions:
        partitions.note("", "not used by this mode: the groups of the host are classes")
    section.note_rest(_UNKNOWN)
    return {"rdt": found}


def _renamed(partitions: Section) -> JsonObject:
    """Take partitions, with the keys of classes as they are now."""
    found = partitions.take_all()
    for partition, row in found.items():
        classes = (row.get("classes") or {}) if _is_mapping(row) else {}
        for name, one in classes.items() if _is_mapping(classes) else ():
            for key in sorted(_OLD_KEYS.keys() & one if _is_mapping(one) else ()):
                one[_OLD_KEYS[key]] = one.pop(key)
                partitions.note(f"{partition}.classes.{name}.{key}", _RENAMED)
    return found


def _count_classes(partitions: JsonObject) -> int:
    classes = (one.get("classes") for one in partitions.values() if _is_mapping(one))
    return sum(len(one) for one in classes if _is_mapping(one))


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _blockio(section: Section) -> JsonObject:
    classes = section.section("Classes")
    section.note_rest(_UNKNOWN)
    if not classes:
        return {}
    found = {
        "enable": True,
        "usePodQoSAsDefaultClass": True,
        "classes": classes.take_all(),
    }
    return {"blockio": found}


def _cpu(section: Section, pools: JsonObject) -> JsonObject:
    rows = section.section("classes")
    section.note_rest(_UNKNOWN)
    classes: JsonObject = {}
    for name in rows.names:
        row = rows.section(name, any_case=True)
        classes[name] = row.copy({key: key for key in _CPU_CLASS})
        row.give_up(_EPP, _NO_EPP)
        row.note_rest("unknown key, which CRI Resource Manager ignored as well")
    keep_known_classes(pools, classes, rows)
    return {"cpu": {"classes": classes}} if classes else {}
