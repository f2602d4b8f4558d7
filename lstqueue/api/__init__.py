"""The kinds of lstqueue.dev/v1alpha1 as pydantic models, and the CRDs made from them.

Imports no other room. Users' objects are read leniently (unknown fields are ignored), so that a newer CRD
never breaks an older operator.
"""
