"""Builds the model of the machine from sysfs and procfs.

`discovery.read_machine` reads all of it; read that first. It takes its parts from

* `cores`: packages, dies, cores, threads and frequencies,
* `nodes`, `memory_kinds`: NUMA nodes, distances, huge pages and kinds of memory,
* `caches`, `devices`: caches, and PCI, block and network devices with their nodes,
* `platform`: resctrl, uncore frequencies and the Speed Select driver.

`hotplug` reads the model again after CPUs or memory have changed. `dump` stores a
machine in an archive and loads it. `sysfs_writer` is the inverse of discovery: it
writes the sysfs files of a model, for simulations and tests.
"""
