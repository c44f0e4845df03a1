"""The topology-aware policy: containers in a tree of pools that follows the machine."""

from __future__ import annotations
