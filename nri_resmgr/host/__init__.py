"""All access to files of the host: sysfs, procfs, cgroups, resctrl and our own state.

Paths are those of the host; a `Tree` maps them to where the host's root is mounted.

* `tree`, `recorded`, `fields`, `paths`: read host files, live or held in memory.
* `machine`: builds the model of the machine, and a new one after hotplug.
* `cgroups`: finds, reads and writes the cgroups of containers.
* `knobs`: sets host files, such as frequencies, and restores their original values.
* `speed_select`: reads and sets Intel Speed Select through its device.
* `resctrl`: maintains RDT classes as groups of the resctrl file system.
* `interrupts`, `irqbalance`, `scheduling`, `block_devices`, `hints`, `mounts`,
  `pressure`, `kubelet`, `links`: one part of the host each.
* `state_dir`, `trust`: the daemon's state directory, and who may write to it.
* `resource_files`: publishes allocated resources to containers.
* `text_file`, `file_watch`: read and watch files that the user names.

Nothing is imported here: clients of the daemon need `bounded` only.
"""
