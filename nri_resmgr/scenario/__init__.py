"""Scenarios and recordings, decided by the real policies without a node.

`read`, `rows`, `pods`, `pod_level`, `kinds` and `manifests` read scenarios and
manifests of Kubernetes into the steps of `steps`. `play` plays them on a `node`, which
runs the real plugin. `findings` and `compare` describe the result, `picture` what
`nri_resmgr.pictures` draws of it. `replay` sends a recording to the plugin (`replayed`)
and collects `differences`, and a `timeline`, which `trace_events` writes.
"""
