"""`lstqueue evaluate`: what a policy would make of a trace, by the operator's own decision code.

`traces` reads what others publish into a `workload`, `deadlines` says by when its jobs are due and
`estimates` what is known of their run times. `world` is the cluster on a virtual clock, `replay` runs a trace
through it, `bounds` says how much any policy could have met.
"""
