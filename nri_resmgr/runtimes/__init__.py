"""Configuration files of container runtimes: how to enable NRI in them.

`containerd` and `crio` compute the change of a file; `switch` has what both share;
`toml_edit` sets keys of a TOML text, whose statements `toml_statements` finds.
"""
