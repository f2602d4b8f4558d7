"""`lstqueue demo`: a slice of a real trace through the real operator on the embedded cluster, audited.

`trace` reads the slice, `mix` says how its jobs are asked for, `scenario` turns that into manifests. `play`
runs one policy in a virtual world of its own, where `trouble` comes on the way and `meter` writes down what
can be seen; `outcome` and `story` make figures and a few lines of it. `processes` runs both policies side by
side, `report` shows what came of it, `command` is the command line. It judges nothing that the audit and the
objects in the store do not show.

`serve` is `lstqueue demo --serve`: the same cluster and operator without a trace, for kubectl, at a speed to
follow. `kubeconfig` writes what kubectl needs, `run_times` ends pods that say no end.
"""
