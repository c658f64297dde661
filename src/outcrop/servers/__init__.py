"""Servers: the contracts over the wires that agents speak.

`jsonrpc` holds messages, calls in flight and admission; `mcp` the protocol; `stdio` one transport. Only the last knows
about file descriptors, so that another transport needs nothing but its own framing.
"""
