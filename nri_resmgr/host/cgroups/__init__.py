"""Cgroups of the host: where they are, what is in force there, and what is written.

* `layout`: where and in which version cgroups are mounted.
* `finder`: finds the folders of a container's cgroup.
* `containers`: reads effective CPUs, memory nodes and weights of containers.
* `cpuset`: reads the CPUs of any cgroup, such as one that a configuration names.
* `threads`: reads the threads of a cgroup and those below it.
* `writer`: writes CPUs, memory nodes and weights of running containers.
* `write_failures`: errors of these writes, with what to do about them.
* `cpuset_watch`: notices that something has written the cpuset of a container.
* `partitions`, `partition_watch`: make and end partitions, and notice invalid ones.
* `writes`: writes values to a container's cgroup that the runtime cannot set.
* `isolated`: reads and checks the cgroups of isolated containers.
"""
