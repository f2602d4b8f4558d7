"""`lstqueue demo`: a slice of a real trace through the real operator on the embedded cluster, audited.

`trace` reads the slice, `scenario` turns it into manifests, `play` runs one policy in a virtual world of its
own, `processes` runs both side by side, `report` shows what came of it, `command` is the command line. It
judges nothing that the audit and the objects in the store do not show.
"""
