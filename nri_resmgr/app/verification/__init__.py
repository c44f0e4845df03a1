"""Verification of containers' cgroups against the decisions of the policy.

`verifier` runs rounds: `inspection` reads the cgroups of all containers, `drift`
compares them with their pins and gives a verdict, `report` logs and counts changes of
verdicts (`DriftReport`; the counter is `Metrics.drift` of
`nri_resmgr.app.metrics.counters`). Drifted containers are repaired by updates
(`nri_resmgr.app.background.repairs`).
"""
