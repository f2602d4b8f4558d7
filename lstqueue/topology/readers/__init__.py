"""Readers of what people have of an interconnect, one module a format. Pure: they are given text or objects.

Each returns a `found.Found`, and raises `found.TopologyError` for a source that says nothing usable. What is
wrong with a part of one is left out, by name and with the reason, and the rest counts.
"""
