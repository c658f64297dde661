"""Outcrop: the searchable memory of every coding agent on a machine."""

__version__ = "0.1.0"
