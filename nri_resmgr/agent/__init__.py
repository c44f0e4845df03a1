"""The cluster's side of a node: the API server in, control socket and spool folder out.

A process of its own, with network and credentials and without privileges. It knows
nothing of NRI, of policies, or of the host; the privileged daemon never imports it.

Read `agent` first: it runs the parts. Each is a pure module and one that does:

* `choice` decides which object counts, from what `configuration` watches; `documents`
  has the document in an object.
* `hand_over` hands documents over, by `spool_folder`; `verdict` and `daemon_state` are
  what comes back, by `daemon_link`. `own_report` is the agent's report to the daemon.
* `reports` runs the reporters below, each when something has changed and is due.
* `node_report`, `object_status` and `conditions` make the status of the node and of the
  object; `report_pace` says when they are due, `reporter` writes them.
* `node_topology` makes what schedulers read of what the node can grant (`zones`), with
  the `fingerprint` of its pods; `publishing_pace` says when it is due,
  `topology_publisher` writes it, and `publication` is what became of that.
* `adjustments` watches, hands over and reports adjustments of containers.
* `node_capacity` writes extended resources into the status of the Node.
* `startup_taint` removes the taint with which the node's kubelet registers.
* `pod_events` makes events on pods of refusals and losses, `event_writer` writes them.
* `metrics` has the series, `insight` those of a running agent, and its readiness.
* `watch_problems` has what cannot be watched now.

`api` is the client of the API server.
"""
