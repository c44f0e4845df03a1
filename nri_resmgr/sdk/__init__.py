"""Parts of plugins that their authors would write again each time.

* `settings`: the configuration as a typed class, by `conversion`.
* `annotations`: annotations of pods, for one container or for all of them.
* `requests`: the requests and limits that the kubelet asked for.
* `store`: a small value that survives restarts.
* `chain`: what other plugins change in requests, by sessions before and after them.

Import these modules by their names: a plugin then starts without the others, of which
`requests` imports most. `nri_resmgr.stub` has handlers, values, builders and `serve`.
The daemon uses none of this. See docs/write-a-plugin.md.
"""
