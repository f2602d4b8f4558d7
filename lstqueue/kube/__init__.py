"""The port to a Kubernetes API and what stands on it. Knows no engine.

`port` is the interface (ten verbs) and its errors, `client` the adapter over `kubernetes.aio` (the only
importer of the client library), `reflector` keeps a watched list in step, `limits` bounds the request rate.
"""
