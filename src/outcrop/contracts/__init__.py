"""The wire contracts, as plain functions over store and search; servers and commands are their callers.

A contract knows no harness and no transport: what it must know of harnesses comes as a `catalog.Catalog`.
"""
