"""Tables that more than one suite runs: on the embedded API server, and on a real one."""
