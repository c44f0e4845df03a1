"""Sets host files, such as frequencies and interrupt affinities, and restores them.

* `knobs`: sets files as desired, in an order that the kernel accepts, and restores the
  original value of a file that is no longer desired. Read that first.
* `files`: a host tree that can be written, and whether two texts mean the same value.
* `journal`: keeps original values in the state directory, for the next process.
* `report`: what was written, restored, rejected, and changed by other programs.
* `cpu`: reads the facts of the machine that CPU classes need.
"""
