"""Cgroups of the host: where they are, what is in force there, and what is written.

* `layout`: where and in which version cgroups are mounted.
* `finder`: finds the folders of a container's cgroup.
* `containers`: reads effective CPUs, memory nodes and weights of containers.
* `cpuset`: reads the CPUs of any cgroup, such as one that a configuration names.
* `threads`: reads the threads of a cgroup and those below it.
* `writes`: writes values to a container's cgroup that the runtime cannot set.
* `isolated`: reads and checks the cgroups of isolated containers.
"""
