"""The balloons policy: CPUs set apart by type of container, as many as requested.

`policy` receives the events. A new container goes through `choose_type`,
`choose_balloon` and `place`; `lifecycle` and `pick` resize balloons, `memory` and
`pins` follow. Running containers go through `adopt`, `restore` and `recognise`. The
state is in `state`, its checkpoint form in `records`, what is shown of it in `views`.
"""

from __future__ import annotations
