"""Isolation of containers by CRI-O's annotations, and the settings that it needs.

`values` reads annotations into `requests`. `cgroup_files` computes files for quotas and
load balancing, `host` requests for CPU settings and interrupts. `aspects` lists what is
isolated, for `status` and metrics.
"""
