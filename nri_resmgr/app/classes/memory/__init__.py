"""Memory QoS classes, NUMA policies and limits of misc resources, by annotations.

`setter` is imported on every node and looks for the annotations; the rest is imported
when a pod has any: `requests` reads and checks them, `misc_limits` also writes those
limits that a runtime cannot set. `containers` lists the members of classes.
"""
