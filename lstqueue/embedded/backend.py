"""One API server's state, whichever way in: the store, its unfinished lists, its watches and its faults."""

from __future__ import annotations

from lstqueue.embedded import faults, pages, store, watches


class Backend:
    """What the HTTP server and the in-process client share.

    Args:
        objects: the store.
        bookmark_s: seconds of loop time between the bookmarks of a watch.
        watch_s: seconds of loop time that a watch lives when it does not say.
    """

    def __init__(
        self,
        objects: store.Store,
        *,
        bookmark_s: float = 60.0,
        watch_s: float = watches.DEFAULT_TIMEOUT_S,
    ) -> None:
        self.store = objects
        self.pages = pages.Pages(objects)
        self.watches = watches.Watches(objects, bookmark_s=bookmark_s, watch_s=watch_s)
        self.faults = faults.Faults(objects, self.pages, self.watches)
