"""The decision pass: snapshot in, plan out. Pure: no clock, no random source, no I/O.

`decide.decide(snapshot, now, config)` is the whole interface. The same call serves the operator, what-if
questions and replays of traces; a policy is a configuration of it, not another code path.
"""
