"""Doubles of the kubelet's services, on real unix sockets, for tests.

`KubeletServer` (`server`) serves any services, and can restart, fail and delay. Each
other module has one service.
"""
