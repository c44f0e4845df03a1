"""Resource classes: their definitions, what a machine supports, and what to set.

Pure computation, usable without the rest of this project. Each kind of class is a
package of its own; `choice` decides which class a container gets, `unified` prepares
files of cgroup v2 for runtimes.
"""
