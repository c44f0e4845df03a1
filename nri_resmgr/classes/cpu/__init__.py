"""CPU classes: frequency, idle states and Speed Select of CPUs under one name.

`cpu_class` is what an operator writes, `facts` what a machine has, `check` compares
both. `desired` computes the contents of files, with `cpufreq` for frequency policies
and `turbo` for priorities; `sst` computes the state of Speed Select. `requests` are
annotations of containers about their exclusive CPUs. Import the modules: most nodes
have no CPU class.
"""
