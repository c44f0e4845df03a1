"""Metrics: the table of all, counters, and series computed on request.

`table` lists every metric; `counters` counts events while the daemon runs. All others
are computed from the present state at each scrape, by `of_state` (pools, memory,
containers, and nri-plugins' metrics), `of_host` (classes, host settings, verification)
and, outside of `app`, `nri_resmgr.process.own_metrics`. `text` writes them in
Prometheus' format.
"""
