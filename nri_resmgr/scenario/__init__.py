"""Scenarios and recordings, decided by the real policies without a node.

`read`, `rows`, `pods`, `kinds` and `manifests` read a scenario or Kubernetes manifests
into the steps of `steps`. `play` plays them on a `node`, which runs the real plugin.
`findings` and `compare` describe the result, `picture` draws it. `replay` sends a
recording to the plugin (`replayed`) and collects `differences`.
"""
