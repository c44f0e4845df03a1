"""Rejects containers with adjustments that the node's owner does not allow."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Final

import msgspec

from nri_resmgr.sdk.annotations import BadAnnotation, annotation_of, read_annotation
from nri_resmgr.sdk.settings import InvalidField, Settings
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    RequestRejected,
    ValidateContainerAdjustmentHandler,
    Validation,
    serve,
)
from nri_resmgr.stub.model import AdjustedField, FieldOwners, ProfileType
from nri_resmgr.values.shorten import shortened

REQUIRED: Final = "required-plugins.noderesource.dev"
FIELDS: Final = {one.name.lower(): one for one in AdjustedField if one}

SHOWN: Final = 80  # characters of a text in an annotation

# What Go's strconv.ParseBool reads.
BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}

# The field is that of the settings.
SECCOMP: Final[Mapping[int, tuple[str, str]]] = {
    ProfileType.RUNTIME_DEFAULT: (
        "reject_runtime_default_seccomp_adjustment",
        "the runtime's default",
    ),
    ProfileType.UNCONFINED: ("reject_unconfined_seccomp_adjustment", "no"),
    ProfileType.LOCALHOST: ("reject_custom_seccomp_adjustment", "the pod's"),
}


class Rule(Settings, frozen=True):
    """Fields that only some plugins may adjust.

    Attributes:
        fields: Names of `AdjustedField` in lower case.
        namespaces: Shell patterns of the pods' namespaces that it is about.
        allowed: Shell patterns of plugins that may, by ``NN-name`` or name.
    """

    fields: tuple[str, ...]
    namespaces: tuple[str, ...] = ("*",)
    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.fields:
            if name not in FIELDS:
                raise InvalidField("fields", f"{name!r} is none of {', '.join(FIELDS)}")

    def check(self, validation: Validation) -> None:
        """Reject the adjustment of a plugin that may not make it.

        Raises:
            RequestRejected: There is one.
        """
        if not matches(validation.pod.namespace, self.namespaces):
            return
        for name in self.fields:
            for plugin in owners_of(validation, FIELDS[name]):
                bare = plugin.partition("-")[2]
                if not (matches(plugin, self.allowed) or matches(bare, self.allowed)):
                    raise RequestRejected(f"{plugin} may not adjust {name}")


class ValidatorSettings(Settings, frozen=True):
    """The keys of the configuration document with their defaults."""

    enable: bool = True
    reject_hooks: bool = msgspec.field(default=False, name="rejectOCIHookAdjustment")
    reject_runtime_default_seccomp_adjustment: bool = False
    reject_unconfined_seccomp_adjustment: bool = False
    reject_custom_seccomp_adjustment: bool = False
    reject_namespace_adjustment: bool = False
    reject_sysctl_adjustment: bool = False
    required_plugins: tuple[str, ...] = ()
    tolerate_missing_plugins_annotation: str = ""
    rules: tuple[Rule, ...] = ()


class Validator(ConfigureHandler, ValidateContainerAdjustmentHandler):
    """The plugin."""

    def __init__(self) -> None:
        self._settings = ValidatorSettings()

    def configure(self, configuration: Configuration) -> None:
        """Apply the configuration; called at the start of each session."""
        self._settings = ValidatorSettings.read(configuration.text)

    def validate_container_adjustment(self, validation: Validation) -> None:
        """Check what all plugins together want to adjust."""
        if not self._settings.enable:
            return
        check_fields(self._settings, validation)
        for rule in self._settings.rules:
            rule.check(validation)
        check_plugins(self._settings, validation)


def check_fields(settings: ValidatorSettings, validation: Validation) -> None:
    """Reject adjustments that the default validator of runtimes can reject.

    Raises:
        RequestRejected: There is one.
    """
    rejected = {
        AdjustedField.OCI_HOOKS: (settings.reject_hooks, "OCI hooks"),
        AdjustedField.NAMESPACE: (settings.reject_namespace_adjustment, "namespaces"),
        AdjustedField.SYSCTL: (settings.reject_sysctl_adjustment, "sysctls"),
        AdjustedField.SECCOMP_POLICY: seccomp(settings, validation),
    }
    for field, (is_rejected, what) in rejected.items():
        if is_rejected and (plugins := owners_of(validation, field)):
            raise RequestRejected(f"{', '.join(plugins)} may not adjust {what}")


def seccomp(settings: ValidatorSettings, validation: Validation) -> tuple[bool, str]:
    """Return whether a container's seccomp policy may not be adjusted, and of which."""
    linux = validation.container.linux
    profile = linux.seccomp_profile if linux is not None else None
    kind = ProfileType.UNCONFINED if profile is None else profile.profile_type
    if kind not in SECCOMP:
        return False, ""
    key, whose = SECCOMP[kind]
    return getattr(settings, key), f"the seccomp policy, with {whose} profile"


def check_plugins(settings: ValidatorSettings, validation: Validation) -> None:
    """Check that all plugins are connected that the container requires.

    Raises:
        RequestRejected: One is not.
        BadAnnotation: An annotation cannot be read.
    """
    pod, container = validation.pod, validation.container
    key = settings.tolerate_missing_plugins_annotation
    if key and (tolerates := annotation_of(pod, container, key)) is not None:
        if tolerates.value not in BOOLEANS:
            title, value = f"{pod.namespace}/{pod.name}", tolerates.value
            why = f"{shortened(value, SHOWN)!r} is not true or false"
            raise BadAnnotation(title, container.name, tolerates.key, value, why)
        if BOOLEANS[tolerates.value]:
            return
    listed = read_annotation(pod, container, REQUIRED, tuple[str, ...]) or ()
    required = (*settings.required_plugins, *listed)
    present = {plugin.name for plugin in validation.plugins}
    present |= {f"{plugin.index}-{plugin.name}" for plugin in validation.plugins}
    if missing := [name for name in required if name not in present]:
        names = shortened(", ".join(missing), SHOWN)
        raise RequestRejected(f"not connected, but required: {names}")


def owners_of(validation: Validation, field: AdjustedField) -> list[str]:
    """Return the plugins that have set or removed a field of the container."""
    owners = validation.owners.owners.get(validation.container.id, FieldOwners())
    found = [owners.simple[field]] if field in owners.simple else []
    if field in owners.compound:
        found += owners.compound[field].owners.values()
    names = [name.removeprefix("-") for one in found for name in one.split(",")]
    return sorted(set(names))


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a name fits one of some shell patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    serve(Validator(), index="99")
