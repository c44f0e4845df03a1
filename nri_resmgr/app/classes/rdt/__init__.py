"""RDT classes: adjustments at creation, resctrl groups while containers run."""
