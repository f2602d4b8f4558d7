"""`lstqueue record`: what a cluster's DeadlineJobs were, written down as a trace that the evaluator reads.

`rows` makes a line of one DeadlineJob that has succeeded, from its spec and status alone; `book` is the file,
which only grows; `reading` goes through a cluster once, or follows it; `command` is the command line. It
never writes to the API, and needs no operator to run.
"""
