"""What the daemon, the agent and the webhook have alike, beside their work.

`endpoint` opens the addresses of metrics and health; `heartbeat` measures the event
loop, and `health` serves liveness and readiness; `own_metrics` measures the process,
and `insight` serves metrics of the agent and of the webhook; `systemd` sends its
notifications.
Nothing here knows what the process does.
"""
