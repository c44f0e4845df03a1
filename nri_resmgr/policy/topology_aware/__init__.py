"""The topology-aware policy: containers in a tree of pools that follows the machine.

One decision passes these modules in order:

* `policy`: a method per event.
* `demand`: the kind and the number of CPUs for a container, by `settings`.
* `state` and `pool_ledger`: all grants, and their sums in the tree of `pools`.
* `choose`: ranks pools by the `criteria`, such as the level (socket, NUMA node) that a
  Burstable container prefers, with scores by affinity (`affinity_score`),
  devices (`hint_scores`) and memory (`memory`).
* `place` and `take`: the first pool that can grant CPUs and memory, or one of `errors`.
  `make_room` has containers without a request make way where nothing else helps.
* `pins`: what changes for containers in the runtime.

`adopt` places running containers after a start, and `whole_pods` reserves places for
pods. `views` and `exclusive_cpus` show the state, and `records` is its checkpoint form.
"""

from __future__ import annotations
