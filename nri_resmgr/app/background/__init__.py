"""Tasks beside requests: periodic polls, reconcilers, repairs, hotplug.

`reconciler` decides when a part of the host is brought to the wanted state; the
appliers that write are in `host_settings`, `classes.rdt` and `classes.blockio`.
`repairs` limits updates after drift, `hotplug` follows CPUs and memory that come or
go, `periodic` has the common ticks, and `threads` calls what may hang. The
`supervisor` runs all of them, and starts those that fail again;
`nri_resmgr.daemon.services` has the list.
"""
