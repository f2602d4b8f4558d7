"""The report of an evaluation: one HTML file that a manager can read and an engineer can check.

It needs no network, no script and no other file. `record` takes down what a replay does, `series` turns that
into curves, `plots` and `gantt` draw them with `axes` and `svg`, `words` formats figures, `page` puts all of
it into one file. Figures come from the JSON that scripts get, so the two cannot differ.
"""
