"""Building of policies from a configuration and a machine.

`build.build_policy` finds the kind of the configuration (`nri_resmgr.kinds`; the
built-in ones are in `kinds`) and calls its builder: `static`, `topology_aware` or
`balloons`, the last one with `balloon_types` and `reserved_balloons`. All of them use
`chosen_cpus`. `host_fit` checks what the host supports of classes and host settings.
"""
