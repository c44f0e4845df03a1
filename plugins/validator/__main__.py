"""Rejects containers with adjustments that the node's owner does not allow."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.host.text_file import read_text_file
from nri_resmgr.log.output import configure_logging
from nri_resmgr.stub import (
    Configuration,
    ConfigureHandler,
    InputError,
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
        "rejectRuntimeDefaultSeccompAdjustment",
        "the runtime's default",
    ),
    ProfileType.UNCONFINED: ("rejectUnconfinedSeccompAdjustment", "no"),
    ProfileType.LOCALHOST: ("rejectCustomSeccompAdjustment", "the pod's"),
}


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
                raise ValueError(f"{name!r} is none of {', '.join(FIELDS)}")

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


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of the configuration document with their defaults."""

    enable: bool = True
    rejectOCIHookAdjustment: bool = False  # noqa: N815 - as in the document
    rejectRuntimeDefaultSeccompAdjustment: bool = False  # noqa: N815
    rejectUnconfinedSeccompAdjustment: bool = False  # noqa: N815
    rejectCustomSeccompAdjustment: bool = False  # noqa: N815
    rejectNamespaceAdjustment: bool = False  # noqa: N815
    rejectSysctlAdjustment: bool = False  # noqa: N815
    requiredPlugins: tuple[str, ...] = ()  # noqa: N815
    tolerateMissingPluginsAnnotation: str = ""  # noqa: N815
    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Parse a YAML document.

        Raises:
            InputError: The document is not valid.
        """
        try:
            return msgspec.convert(parse_yaml(text) or {}, cls)
        except msgspec.ValidationError as error:
            raise InputError(str(error)) from None


class Validator(ConfigureHandler, ValidateContainerAdjustmentHandler):
    """The plugin."""

    def __init__(self, settings: Settings) -> None:
        self._initial = self._settings = settings

    def configure(self, configuration: Configuration) -> None:
        """Apply the document of the runtime, if there is one, in place of the file."""
        text = configuration.text
        self._settings = Settings.parse(text) if text else self._initial

    def validate_container_adjustment(self, validation: Validation) -> None:
        """Check what all plugins together want to adjust."""
        if not self._settings.enable:
            return
        check_fields(self._settings, validation)
        for rule in self._settings.rules:
            rule.check(validation)
        check_plugins(self._settings, validation)


def check_fields(settings: Settings, validation: Validation) -> None:
    """Reject adjustments that the default validator of runtimes can reject.

    Raises:
        RequestRejected: There is one.
    """
    rejected = {
        AdjustedField.OCI_HOOKS: (settings.rejectOCIHookAdjustment, "OCI hooks"),
        AdjustedField.NAMESPACE: (settings.rejectNamespaceAdjustment, "namespaces"),
        AdjustedField.SYSCTL: (settings.rejectSysctlAdjustment, "sysctls"),
        AdjustedField.SECCOMP_POLICY: seccomp(settings, validation),
    }
    for field, (is_rejected, what) in rejected.items():
        if is_rejected and (plugins := owners_of(validation, field)):
            raise RequestRejected(f"{', '.join(plugins)} may not adjust {what}")


def seccomp(settings: Settings, validation: Validation) -> tuple[bool, str]:
    """Return whether a container's seccomp policy may not be adjusted, and of which."""
    linux = validation.container.linux
    profile = linux.seccomp_profile if linux is not None else None
    kind = ProfileType.UNCONFINED if profile is None else profile.profile_type
    if kind not in SECCOMP:
        return False, ""
    key, whose = SECCOMP[kind]
    return getattr(settings, key), f"the seccomp policy, with {whose} profile"


def check_plugins(settings: Settings, validation: Validation) -> None:
    """Check that all plugins are connected that the container requires.

    Raises:
        RequestRejected: One is not, or an annotation cannot be read.
    """
    key = settings.tolerateMissingPluginsAnnotation
    tolerates = effective(validation, key) if key else None
    if tolerates is not None and tolerates not in BOOLEANS:
        found = shortened(tolerates, SHOWN)
        raise RequestRejected(f"annotation {key}: {found!r} is not true or false")
    if tolerates is not None and BOOLEANS[tolerates]:
        return
    required = settings.requiredPlugins
    try:
        text = effective(validation, REQUIRED)
        document = parse_yaml(text or "", references=False) or ()
        required += msgspec.convert(document, tuple[str, ...])
    except (InputError, msgspec.ValidationError) as error:
        raise RequestRejected(f"annotation {REQUIRED}: {error}") from None
    present = {plugin.name for plugin in validation.plugins}
    present |= {f"{plugin.index}-{plugin.name}" for plugin in validation.plugins}
    if missing := [name for name in required if name not in present]:
        names = shortened(", ".join(missing), SHOWN)
        raise RequestRejected(f"not connected, but required: {names}")


def effective(validation: Validation, key: str) -> str | None:
    """Return the annotation of the narrowest scope."""
    for scope in (f"/container.{validation.container.name}", "/pod", ""):
        if (value := validation.pod.annotations.get(key + scope)) is not None:
            return value
    return None


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


def main() -> None:
    """Run the plugin."""
    parser = argparse.ArgumentParser("validator", description=__doc__)
    parser.add_argument("--name", help="name to register with")
    parser.add_argument("--index", help="two digits, the order among plugins")
    parser.add_argument("--socket", metavar="PATH", help="socket of the runtime")
    parser.add_argument(
        "--config-file",
        type=Path,
        metavar="PATH",
        help="document for a plugin that the runtime does not start",
    )
    options = parser.parse_args()
    configure_logging()
    try:
        text = read_text_file(options.config_file) if options.config_file else ""
        plugin = Validator(Settings.parse(text))
    except InputError as error:
        parser.error(f"--config-file: {error}")
    serve(plugin, name=options.name, index=options.index, socket=options.socket)


if __name__ == "__main__":
    main()
