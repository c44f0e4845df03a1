"""Tasks beside requests: periodic polls, reconcilers, repairs, hotplug.

`reconciler` decides when a part of the host is brought to the wanted state; the
appliers that write are in `host_settings`, `classes.rdt` and `classes.blockio`.
`repairs` limits updates after drift, `hotplug` follows CPUs and memory that come or go,
and `periodic` has the common ticks and threads. `nri_resmgr.daemon.services` starts
these tasks.
"""
