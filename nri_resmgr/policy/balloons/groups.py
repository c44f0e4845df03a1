"""The texts by which containers prefer the same balloon: ``${pod/labels/app}``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from nri_resmgr.policy.events import ContainerSpec
from nri_resmgr.policy.matching import Reader, reader_of

_KEY: Final = re.compile(r"\$\{([^}]*)\}")


def group_of(spec: ContainerSpec, template: str) -> str:
    """Expand a template for a container; a key that it has not expands to nothing.

    Raises:
        UnknownAffinityKey: The template asks for a key that there is not.

    >>> group_of(ContainerSpec("a", namespace="shop"), "ns-${namespace}")
    'ns-shop'
    """
    return "".join(
        part if isinstance(part, str) else part(spec) or ""
        for part in parts_of(template)
    )


@lru_cache(maxsize=64)
def parts_of(template: str) -> tuple[str | Reader, ...]:
    """Take a template apart.

    Raises:
        UnknownAffinityKey: It asks for a key that there is not.
    """
    parts: list[str | Reader] = list(_KEY.split(template))
    parts[1::2] = [reader_of(str(key)) for key in parts[1::2]]
    return tuple(parts)
