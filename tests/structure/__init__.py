"""``make structure``: the size of the code, and how much of it one request runs.

`test_contracts` is about imports: which contracts there are, and what each refuses.

The table in docs/architecture.md is a measurement, so no test compares it: it shows the
last run of the command.
"""
