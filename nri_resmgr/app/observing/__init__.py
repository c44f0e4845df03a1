"""Observation of decisions and sessions: decision log, history, traces.

`decision_log` writes a log line per decision; `history` keeps recent events for the
control socket; both count equal refusals by `refusal_counts`. `sessions` follows the
session with the runtime; `tracing` makes spans.
The base of decision observers is in `nri_resmgr.app.observers`.
"""
