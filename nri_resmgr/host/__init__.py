"""Every open of sysfs and procfs, and the machine's model out of them."""

from __future__ import annotations
