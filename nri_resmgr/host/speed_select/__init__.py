"""Reads and sets Intel Speed Select through its device, ``/dev/isst_interface``.

* `isst`: the ioctls of the device, requests as bytes and replies as numbers.
* `areas`: which cores belong to which punit (power control unit).
* `punits`: reads the facts of all punits.
* `punit_writes`: changes one punit, in the order that the hardware accepts.
* `device`: opens the device of a host; the entry point of discovery.
* `knobs`: sets punits as desired, and restores their original settings.
* `journal`: keeps original settings in the state directory, for the next process.

There are two kinds of drivers: TPMI, and before that mailbox and registers.
"""
