"""Simulate noisy reports of progress, and say how well they tell what is left: docs/engine.md, Estimates.

    python hack/progress_noise.py [PRIOR DOUBT]

PRIOR and DOUBT are `progress_prior` and `progress_doubt` of the configuration. Run times are log-normal, the
start is slow, the pace changes by a log-normal factor every 5 % of the work, and the prior is off by another.
"""

from __future__ import annotations

import math
import random
import statistics
import sys

from lstqueue.engine import model, progress

JOBS = 1500
AFTER = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def job(draw: random.Random, off: float, noise: float) -> tuple[float, float, dict[float, float]]:
    """Draw a job: its run time and its user's figure in hours, and when it is how far."""
    total = math.exp(draw.gauss(0.5, 1))
    figure = total * math.exp(draw.gauss(0, off))
    paces = [math.exp(draw.gauss(0, noise)) for _ in range(20)]
    start = min(noise / 7, total * 0.3)
    step, at, when = (total - start) / sum(paces) / 5, start, {}
    for hundredth in range(1, 101):
        at += paces[(hundredth - 1) // 5] * step
        when[hundredth / 100] = at
    return total, figure, when


def main() -> None:
    """Print the table."""
    given = [float(text) for text in sys.argv[1:3]]
    config = model.Config(progress_prior=given[0], progress_doubt=given[1]) if given else model.Config()
    for noise in (0.3, 0.6):
        for off in (0.5, 1.0):
            draw = random.Random(3)
            errors: dict[float, list[float]] = {share: [] for share in AFTER}
            inside: dict[float, list[bool]] = {share: [] for share in AFTER}
            for _ in range(JOBS):
                total, figure, when = job(draw, off, noise)
                mid = max(4, round(figure * model.HOUR))
                prior = model.Estimate(mid // 4, mid, mid * 3 // 2)
                for share in AFTER:
                    track = progress.begun(progress.NONE, 1, None, prior=prior, fresh=True)
                    report = round(share * progress.WHOLE), round(when[share] * model.HOUR)
                    known = progress.reported(track, report, saved=0, config=config).estimate
                    assert known is not None
                    left, whole = known.mid - report[1], total * model.HOUR
                    errors[share].append(abs(math.log(left / (whole - report[1]))))
                    inside[share].append(known.lo <= whole <= known.hi)
            cells = [
                f"{share:4.0%} {statistics.fmean(errors[share]):.3f} {statistics.fmean(inside[share]):.2f}"
                for share in AFTER
            ]
            print(f"pace {noise} prior {off}:", "  ".join(cells))


if __name__ == "__main__":
    main()
