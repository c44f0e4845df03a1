"""The command ``nri-resmgr``: one module per command.

`commands` has the table of commands. The module of a command defines
``add_arguments``, which describes its flags, and ``run``; `main` imports only the
chosen one. `flags`, `output`, `look`, `chosen_machine`, `tables` and `amounts` are
shared; a module ``render_*`` formats what a command shows. `top_view` has what keys
change in ``top``.
"""
