"""The application: NRI's values to events of a policy, and decisions to NRI's values.

docs/architecture.md says which packages and modules of it know NRI; all know the values
of policies. The packages, from the top:

* `plugin` answers the events of the runtime; `metrics` makes series of everything.
* `offers`, `configuration`, `host_settings` and `verification`: resources of the node,
  documents in force and their policies, CPU and interrupt settings, drift. `running`
  delivers pins to running containers, and `adjustments` overrides what they ask for.
* `classes` and `observing`: RDT, block I/O, memory and scheduling classes; decision log
  and history.
* `annotations`, `requests` and `background`: inputs of pods, periodic tasks.
* `observers`: the base of everything that reacts to decisions.

Imports point downwards only; pyproject.toml has the contract.
"""

from __future__ import annotations
