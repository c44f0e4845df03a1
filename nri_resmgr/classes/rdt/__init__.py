"""RDT classes: shares of caches and memory bandwidth, and what resctrl has to hold."""
