"""Where a gang fits. Pure: no clock, no I/O, no Kubernetes types.

`model` has the nodes and the shapes that pods ask for, `capacity` the columns of free room, `placement` the
whole-gang fit. Without an interconnect every node is one domain under one root, which is what is here.
"""
