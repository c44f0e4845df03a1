"""Policies: pure functions from a state and an event to a decision.

No module below uses a clock, files, random numbers or a log, so that every decision
can be repeated from its arguments. Read in this order:

* `events`: what happens to containers. `preferences` and `affinity` are what their
  annotations ask for.
* `decision`: what a policy returns, and the protocol that it fulfils. `views` is what
  it shows to containers, to the host settings and to operators.
* `ledger`: containers with the pins last sent, the part that all states share.
* `base` and `simple`: bases of policies. `topology_aware`, `balloons` and `static`
  build on `base`, `static_plus` on `static`; `podpools`, `dynamic_pools`,
  `static_pools` and `none` are small. `cpu_pools` is what those with named pools share.
* `cpus` and `mems`: the allocators of CPUs and of memory nodes.
* `requests` and `reconstruct`: Kubernetes' requests from cgroup values.
* `records`: states as tables of a checkpoint.
* `errors` and `sentences`: refusals, and reasons in English. `losses`: what another
  configuration would take from running containers.
"""
