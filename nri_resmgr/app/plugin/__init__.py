"""The plugin: NRI events in, decisions of the policy, answers out.

Read `resource_policy` first: one method per event of the runtime. It derives from
`node_policy`, by which every decision is made, observed and delivered. `changes` has
what no request causes: another configuration or machine, claims, adjustments, corrected
requests, rebalancing.

`specs` reads an event into the policy's terms, with `translate` for the conversion and
`hints` for the devices and mounts, which `late_hints` finds after the reply; `engine`
holds the policy in force and its state. `catch_up` handles Synchronize, for which
`present_pins` says where containers run. `timers` hands events back to the policy after
some time.

`pod_budget` and `pod_overhead` account what is of a whole pod. `cpu_claims` has the
CPUs that drivers of other programs have given to claims, and `claimed_containers` the
containers with these. `foreign_pins` notices pins by the kubelet, and
`unobeyed_report` logs annotations without effect. `container_files` publishes its
resources to a container, in a folder that is mounted into it. `reading_budget` and
`reduced` bound what is read and kept of pods.

`status_codes` has the status of an error; the sentence of a refusal is made where it is
raised, mostly by a policy (``errors.py`` of its package). `options` are those of the
node, whatever the policy.
"""
