"""The name of a pod's overhead: clients know it, and need nothing else of policies."""

from __future__ import annotations

from typing import Final

OVERHEAD_NAME: Final = "(overhead)"
"""The name of a pod's overhead; no container can have it in Kubernetes."""
