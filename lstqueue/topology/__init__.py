"""Where a gang fits. Pure: no clock, no I/O, no Kubernetes types.

`model` has the nodes and the shapes that pods ask for, `eligibility` the rules of who may run where, `table`
the nodes as columns, `capacity` the ledger of what is free, `placement` the choice of nodes for a group.
Without an interconnect every node is one domain under one root, which is what is here.
"""
