"""The topology-aware policy: containers in a tree of pools that follows the machine.

One decision passes these modules in order:

* `policy`: a method per event.
* `new_container`: a reserved or former place, else any.
* `demand`: the kind and the number of CPUs for a container, by `settings`.
* `state` and `pool_ledger`: all grants, and their sums in the tree of `pools`.
* `choose`: ranks pools by the `criteria`, such as the level (socket, NUMA node) that a
  Burstable container prefers, with scores by affinity (`affinity_score`),
  devices (`hint_scores`) and memory (`memory`).
* `place`: the first pool that can grant CPUs and memory, or one of `errors` with what
  would help (`advice`). `take` grants from one pool; the allocator of
  `nri_resmgr.policy.cpus` picks the single CPUs. `nearest_place` has others make
  way where nothing else helps, or for CPUs that are nearer; `make_room` says which.
* `pins`: what changes for containers in the runtime.

`adopt` places running containers after a start (`nri_resmgr.policy.reported` says which
grants of the checkpoint still count), `improve` those that fell back once there is
room, and `rebalance` those that would be placed elsewhere now. `whole_pods` reserves
places for pods, `overheads` accounts those of pods, and `claims` has prepared claims.

`views` and `room` show the state, `exclusive_settings` what exclusive CPUs ask of the
host. `growing_state` is a state while running containers are added to it, and `records`
its form in a checkpoint.
"""

from __future__ import annotations
