"""What the node offers to its cluster: extended resources, and labels of its features.

`extended_resources` asks the policy in force what it could grant, `node_features` makes
the text for Node Feature Discovery, `node_offers` has what was computed last, and
`nri_resmgr.daemon.publishing` publishes it. docs/extended-resources.md describes both.
"""
