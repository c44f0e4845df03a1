"""Resource classes: what an operator wrote, what a machine can do, what is to be set.

Pure arithmetic, and usable without the rest: each kind of class is a package of its own.
"""
