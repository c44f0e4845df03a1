"""Converts the files of nri-plugins' memory-qos, memory-policy and resctrl-mon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nri_resmgr.config.migrate.converted import NO_PINS, Converted
from nri_resmgr.config.migrate.section import Note, Section
from nri_resmgr.values.documents import JsonObject

_CLASSES: Final = "classes"
_ORIGIN: Final = "Converted from the file of nri-plugins' {plugin}."
_BESIDE: Final = "To use it beside a policy, copy {key} into the spec of its document."

# Keys that only one of the plugins has, at the top or in a class.
_QOS: Final = ("unifiedannotations", "swaplimitratio")
_POLICY: Final = ("injectMpolset", "policy")
_MONITORS: Final = ("resctrlPath", "labelSelector", "telemetry")

_MOUNT: Final = "the host's mount of resctrl is used"
_TELEMETRY: Final = (
    "the daemon's metrics have the counters: --http-endpoint of `run`, or "
    "instrumentation.httpEndpoint and prometheusExport of the document"
)
_UNKNOWN: Final = "unknown key"


def is_plugin_file(document: Mapping[str, object]) -> bool:
    """Return whether a mapping is the file of one of the plugins."""
    return bool(_plugin_of(document))


def convert_plugin_file(document: Mapping[str, object]) -> Converted:
    """Convert the file of a plugin to a document that pins nothing.

    Raises:
        BadSetting: A part of it is not what the plugin accepts.
    """
    plugin = _plugin_of(document)
    notes: list[Note] = []
    if plugin == "resctrl-mon":
        key, spec = "control.rdt", _monitoring(Section(document, "$", notes))
    else:
        key = "memoryQos" if plugin == "memory-qos" else "memoryPolicy"
        spec = {key: dict(document)}
    origin = [_ORIGIN.format(plugin=plugin), _BESIDE.format(key=key)]
    return Converted(origin, NO_PINS, spec, notes)


def _plugin_of(document: Mapping[str, object]) -> str:
    keys = set(document)
    classes = document.get(_CLASSES)
    for one in classes if isinstance(classes, list) else ():
        keys |= set(one) if isinstance(one, Mapping) else set()
    for plugin, own in (
        ("memory-qos", _QOS),
        ("memory-policy", _POLICY),
        ("resctrl-mon", _MONITORS),
    ):
        if not keys.isdisjoint(own):
            return plugin
    return ""


def _monitoring(top: Section) -> JsonObject:
    filters = top.copy({"namespaces": "namespaces", "labelSelector": "labelSelector"})
    top.give_up("resctrlPath", _MOUNT)
    top.give_up("telemetry", _TELEMETRY)
    top.note_rest(_UNKNOWN)
    chosen = {key: value for key, value in filters.items() if value}
    rdt: JsonObject = {"monitorPods": True}
    if chosen:
        rdt["monitoring"] = chosen
    return {"control": {"rdt": rdt}}
