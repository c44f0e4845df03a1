"""Configurations for daemons on real containerds."""

from __future__ import annotations

from typing import Final

# On a machine with two CPUs the topology-aware policy grants none to one container
# alone: it keeps one for the system and one for the shared pool.
STATIC: Final = "{apiVersion: config.nri/v1alpha1, kind: StaticPolicy}"
