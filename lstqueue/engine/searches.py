"""Step 5, the search: whom it takes for a whole gang to fit, and none of them in vain.

Who may be asked for is the business of whoever asks (`victims`, `reclaim`, `moves`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lstqueue.engine import kept, order, quota, regions, room, trials, victims
from lstqueue.topology.table import Ints, Mask

Found = tuple[list[int], room.Placement]
"""(victims by their place in the herd, where the gang goes)."""


class Search:
    """Finds victims. A search that failed need not be repeated for an equal gang that may have no others."""

    def __init__(self, known: kept.Kept) -> None:
        self._known = known
        self._failed: dict[tuple[int, str, quota.Charges], Mask] = {}

    def run(
        self,
        turn: order.Turn,
        herd: victims.Herd,
        mask: Mask,
        losses_of: Callable[[], victims.Floats],
        kind: str = "",
        quotas: quota.Quota | None = None,
    ) -> Found | None:
        """Return the indices of the victims in the herd and where the gang goes; None when nothing helps.

        Of those it may ask for (`mask`) the cheapest are added first until the gang fits. Those who hold
        nothing where it then goes come last, and are needed only for quota; then who is not needed is spared,
        the dearest first. `quotas` is the quota that counts, all of it when None; it only shrinks within
        searches of one `kind`. What windows leave that the job would meet bounds it besides, whoever leaves.
        """
        gang = turn.gang
        windowed = self._known.windowed(turn)
        key = id(gang), kind, tuple(windowed.items())
        failed = self._failed.get(key)
        if not mask.any() or (failed is not None and not (mask & ~failed).any()):
            return None
        ranked = mask.nonzero()[0]
        trial = trials.Trial(self._known, herd, gang, quotas, windowed)
        if not trial.fits(ranked):
            self._failed[key] = mask
            return None
        losses = losses_of()
        ranked = ranked[np.lexsort((herd.share[ranked], losses[ranked]))]  # of what costs nothing the least
        inside = regions.of(self._known, gang)
        if not inside:
            return _least(trial, herd, ranked, losses)
        found: list[tuple[float, int, Found]] = []
        for nodes in inside:  # victims that free one domain, and not as much in several
            one = trials.Trial(self._known, herd, gang, quotas, windowed, nodes)
            near = ranked[regions.holding(herd, nodes)[ranked]]
            those = next((some for some in (near, ranked) if len(some) and one.fits(some)), None)
            if those is not None:
                victims_there = _least(one, herd, those, losses)
                cost = float((losses * herd.share)[victims_there[0]].sum())
                found.append((cost, len(found), victims_there))
        return min(found, key=_cost)[2] if found else _least(trial, herd, ranked, losses)


def _cost(found: tuple[float, int, Found]) -> tuple[float, int]:
    return found[:2]


def _least(trial: trials.Trial, herd: victims.Herd, ranked: Ints, losses: victims.Floats) -> Found:
    """A set of `ranked`, all of which are enough, of which none can be spared, the cheapest first."""
    chosen = trial.shortest(ranked)
    touched = trial.touched(chosen)
    chosen = trial.shortest(np.concatenate([chosen[touched], chosen[~touched]]))
    kept_ones = chosen.tolist()
    dear = losses * herd.share
    for index in sorted(chosen.tolist(), key=lambda i: (-dear[i], -herd.share[i], i)):
        fewer = [one for one in kept_ones if one != index]
        if fewer and trial.fits(np.array(fewer)):
            kept_ones = fewer
    kept_ones.sort()
    return kept_ones, trial.placement(np.array(kept_ones))
