"""``make docs``: tables of the docs that are generated from the code.

A table stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``, and *NAME* is
a generator of `generators`. Where a column is prose that the code does not have, the
generator keeps the cells that are there; a new row has an empty one, and the test that
compares asks for its text.

The pictures in ``docs/pictures`` are drawn by `pictures`, of what the pages show. The
scripts in ``deploy/completion`` are written by `completion`, of the command line.
"""
