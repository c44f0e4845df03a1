"""Containers in balloons: CPUs set apart by type, as many as are asked for."""

from __future__ import annotations
