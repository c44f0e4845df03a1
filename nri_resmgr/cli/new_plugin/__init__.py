"""``nri-resmgr new-plugin``: a folder to start a plugin of one's own from.

`command` has the flags, and writes the folder. `names` checks the plugin's name, and
makes the names of its module and classes of it. What is written is in `files`: each
file there, without its suffix ``.in`` and with the names in place of ``@NAME@`` and the
like, in its path as well. `tests/cli/test_new_plugin.py` makes a folder and runs what
is in it.
"""
