"""RDT classes: names in adjustments, and resctrl groups while containers run.

`setter` names the class of a new container; `groups` is the applier that keeps resctrl
as configured, with `writer` for its threads. `host` is the state that they share.
"""
