"""RDT classes: names in adjustments, and resctrl groups while containers run.

`setter` names the class of a new container; `groups` is the applier that keeps resctrl
as configured: its `writer` makes the groups and moves containers into them, in a
thread, by `nri_resmgr.host.resctrl`. `host` is the state that they share.
"""
