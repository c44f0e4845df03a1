"""How well policies place containers, beside the kubelet and an exhaustive search.

`life` has containers that come and go; `node` is what places them: `policies` by ours,
`kubelet_manager` by the documented rules of the kubelet's static manager, `exhaustive`
by trying all sets of CPUs, both on `shared_pool`. `measures` looks at where they are.
`make quality` writes the tables of docs/placement-quality.md.
"""
