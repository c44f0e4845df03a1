"""The cluster's documents: read from the agent's spool folder, and offered.

Read `documents` first: it reads the folder again and again, and hands the content to
the others. `reading` is the content of the folder as values; `configuration` offers the
configuration and keeps the verdict on it, `adjustments` does so for the adjustments of
containers; `agent` notes reports of the agent, and its silence.
"""
