"""Observers of decisions: their base class, and the dispatch after the reply.

`observer` has the base class `DecisionObserver`; `dispatch` calls all observers in
order, which `after_reply` defers until the runtime has its answer; `garbage` collects
garbage then. `event_kinds` has the kinds of events, `policy_in_force` is what observers
see of the plugin. The observers themselves are elsewhere: `nri_resmgr.app.observing`,
`nri_resmgr.app.metrics`, the reconcilers, and the checkpoint writer of the daemon.
"""
