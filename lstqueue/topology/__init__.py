"""Where a gang fits. Pure: no clock, no I/O, no Kubernetes types.

`model` has the nodes and the shapes that pods ask for, `eligibility` the rules of who may run where, `table`
the nodes as columns, `capacity` the ledger of what is free, `placement` the choice of nodes for a group.
Without an interconnect every node is one domain under one root.

With one: `domains` has its levels as slices of one order of the nodes, `tree` these without gaps, `wanted`
what a gang asks, `counted` what each domain takes, `sets` which domains, `filling` which nodes in them,
`spread` both for one group, `search` the place of a whole gang, and `bandwidth` what its traffic gets there.
"""
