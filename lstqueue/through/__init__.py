"""`lstqueue evaluate run --through embedded`: the same jobs, by the real operator on the embedded cluster.

The evaluator replays a trace with the engine alone; here the glue is in it too: kopf, reflectors, the ledger
in statuses, every write over HTTP, Jobs, pods and gates. Both replays are of the same jobs under the same
costs, and stand side by side, so that what the glue costs, or breaks, can be seen.

`policies` says a policy as a GPUQueue, `manifests` a job of the trace as a DeadlineJob, `play` runs them,
`seen` writes down what anybody could see who watches the API, `report` puts both replays side by side,
`command` is the command line.
"""
