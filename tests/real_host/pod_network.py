"""Network namespaces of pods: a CNI plugin that leaves them empty."""

from __future__ import annotations

import json
from typing import Final

from tests.real_host.containerd_config import Layout

_VERSION: Final = "0.3.1"

# Source: the CNI specification. The runtime wants an address; it asks for no more.
_PLUGIN: Final = f"""#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '{{"cniVersion": "{_VERSION}", "supportedVersions": ["{_VERSION}"]}}' ;;
ADD) cat <<END
{{"cniVersion": "{_VERSION}",
 "interfaces": [{{"name": "$CNI_IFNAME", "sandbox": "$CNI_NETNS"}}],
 "ips": [{{"version": "4", "address": "192.0.2.9/32", "interface": 0}}]}}
END
;;
esac
"""


def install_pod_network(layout: Layout) -> None:
    """Let pods have networks of their own, from the daemon's next start on.

    They have no device but the loopback.
    """
    # containerd calls the first one for each pod.
    for name in ("loopback", "empty"):
        program = layout.cni / name
        program.write_text(_PLUGIN)
        program.chmod(0o755)
    document = {"cniVersion": _VERSION, "name": "pods", "plugins": [{"type": "empty"}]}
    (layout.cni / "10-empty.conflist").write_text(json.dumps(document))
