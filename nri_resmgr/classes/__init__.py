"""Resource classes: what an operator wrote, what a machine can do, what to set.

Pure arithmetic, usable without the rest; each kind of class is a package of its own.
"""
