"""Files of containerd, and what the command does with them, as values."""

from __future__ import annotations

from nri_resmgr.runtimes.containerd import MAIN, Containerd
from nri_resmgr.runtimes.switch import ConfigFile, FileChange

NRI_2 = '[plugins."io.containerd.nri.v1.nri"]\n'
NRI_3 = "[plugins.'io.containerd.nri.v1.nri']\n"
CONF_D = "/etc/containerd/conf.d"
DROP_IN = f"{CONF_D}/90-nri-resmgr.toml"
IMPORTS = f'imports = ["{CONF_D}/*.toml"]\n'

# As `containerd config default` has them, in our words.
STOCK_1_7 = f"""\
version = 2
imports = []

[plugins]

  {NRI_2}    disable = true
    disable_connections = false
    plugin_registration_timeout = "5s"
    plugin_request_timeout = "2s"

  [plugins."io.containerd.runtime.v2.task"]
    sched_core = false
"""
STOCK_2 = f"""\
version = 3
imports = []

[plugins]
  {NRI_3}    disable = false
    plugin_registration_timeout = '5s'
    plugin_request_timeout = '2s'
    disable_connections = false
"""
DEBIAN = """\
version = 2

[plugins]
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""


def only(text: str, *imported: ConfigFile, original: str | None = None) -> Containerd:
    return Containerd(ConfigFile(MAIN, text), imported, original)


def edit(text: str, after: str) -> FileChange:
    return FileChange(MAIN, text, after, is_edit=True)


def after(found: Containerd, change: FileChange) -> Containerd:
    """Do on values what the command does on files."""
    kept = found.original
    if change.is_edit and not change.is_none:
        kept = change.before if kept is None else kept
        kept = None if kept == change.after else kept
    files = {one.path: one for one in found.files}
    files.pop(change.path, None)
    if change.after is not None:
        files[change.path] = ConfigFile(change.path, change.after)
    main = files.pop(MAIN, None)
    return Containerd(main, tuple(files.values()), kept)
