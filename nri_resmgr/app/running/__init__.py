"""Delivery of changed pins to running containers.

A decision about one container may change the CPUs of all others in its pool.
`delivery` has the interface, and `ByRuntime`: the runtime is asked, which takes
containerd 12 ms for each container. `by_cgroup` writes to the containers' cgroups
instead, 0.1 ms each, and has the runtime's own record follow later. Its parts:

* `container`, `containers`: what is known of one container, and of all.
* `waiting`: which wait, and which are compared later.
* `next_series`: what is written next; `series` writes it, in a thread.
* `results`: what follows from the result of a write.
* `overwrites`: notices what another program writes, and limits what is written again.
* `left_in_force`: reads what an earlier process has left there.
* `record`: what the runtime has recorded, and has to get; `updates` converts.
* `memory_nodes`: writes memory nodes, apart from CPUs.
* `partitions`: makes partitions of the kernel, for which most containers need no write;
  `partition_turns`: when.
* `units`: sets the same values in units of systemd.
* `parts`: those that a daemon chooses by its host and flags.
"""
