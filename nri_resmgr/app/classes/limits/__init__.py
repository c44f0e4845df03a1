"""CPU and memory limits of adjusted containers: in replies, and while containers run.

`values` computes them, `setter` adds those of a new or resized container to the reply,
and `files` is the applier that writes them to the cgroups of running containers, and
puts a container's own back when its adjustment is gone.
"""
