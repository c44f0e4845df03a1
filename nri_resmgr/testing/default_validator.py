"""The validator that runtimes have built in, as far as it requires plugins."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

import msgspec

from nri_proto import nri_pb2
from nri_resmgr.config.syntax import parse_yaml
from nri_resmgr.testing.errors import AdjustmentRejected
from nri_resmgr.values import InputError
from nri_resmgr.values.annotations import narrowest

REQUIRED_PLUGINS: Final = "required-plugins.noderesource.dev"
"""Annotation of pods with the plugins that they require, a list in YAML."""

_NAME: Final = "00-default-validator"

_TRUE: Final = re.compile("1|t|T|TRUE|true|True")  # as Go's strconv.ParseBool
_FALSE: Final = re.compile("0|f|F|FALSE|false|False")


class DefaultValidator(msgspec.Struct, frozen=True, kw_only=True):
    """Refuses containers while plugins are not connected.

    Attributes:
        required_plugins: Of all containers, each by its name or as ``NN-name``.
        tolerate_annotation: Annotation of pods that are exempt; empty for none.

    Source:
        containerd/nri, plugins/default-validator/default-validator.go.
    """

    required_plugins: tuple[str, ...] = ()
    tolerate_annotation: str = ""


def check_required(
    validator: DefaultValidator,
    present: Collection[str],
    pod: nri_pb2.PodSandbox,
    container: nri_pb2.Container,
) -> None:
    """Check that all plugins are there that a container requires.

    Args:
        validator: What all containers require.
        present: The plugins that were connected when the request came, by both their
            names: one that is lost while it answers counts as present.
        pod: Whose annotations may add required plugins, or require none.
        container: The one that is being created.

    Raises:
        AdjustmentRejected: One is missing, or an annotation cannot be read.
    """
    if key := validator.tolerate_annotation:
        tolerated = narrowest(pod.annotations, key, container.name)
        if tolerated is not None and _flag(key, tolerated.value):
            return
    required = [*validator.required_plugins]
    listed = narrowest(pod.annotations, REQUIRED_PLUGINS, container.name)
    if listed is not None:
        required += _names(listed.value)
    if missing := [name for name in required if name not in present]:
        many = "s" if len(missing) > 1 else ""
        why = f'required plugin{many} "{",".join(missing)}" not present'
        raise AdjustmentRejected(_NAME, f"validation error: {why}")


def _flag(key: str, value: str) -> bool:
    if not (_TRUE.fullmatch(value) or _FALSE.fullmatch(value)):
        raise AdjustmentRejected(_NAME, f'invalid {key} annotation "{value}"')
    return _TRUE.fullmatch(value) is not None


def _names(value: str) -> list[str]:
    try:
        found = parse_yaml(value)
    except InputError:
        found = None
    if not isinstance(found, list):
        why = f'invalid {REQUIRED_PLUGINS} annotation "{value}"'
        raise AdjustmentRejected(_NAME, why)
    return [str(one) for one in found]
