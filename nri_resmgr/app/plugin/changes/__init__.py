"""Changes that no request of the runtime causes, a module for each kind.

They are functions of the policy in force, `nri_resmgr.app.plugin.node_policy`, by which
their decisions are observed and delivered:

* `reconfiguration`: another configuration, or another machine.
* `claimed_cpus`: CPUs of claims of other drivers.
* `kubelet_answers`: claims and devices of containers, known once these run.
* `prepared_claims`: claims of our own driver.
* `adjusting`: adjustments of the cluster.
* `corrected_requests`: requests that are known better than at the creation.
* `rebalancing`: containers moved to better places.

What a policy asked to be reminded of comes from `nri_resmgr.app.plugin.timers`.
"""
