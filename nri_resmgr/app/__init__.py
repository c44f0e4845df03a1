"""Events in, decisions out: the only place where NRI meets policy."""

from __future__ import annotations
