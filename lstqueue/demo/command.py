"""What `lstqueue demo` does: both policies side by side, a process each, with progress, then a table."""

from __future__ import annotations

import concurrent.futures
import json
import logging
import multiprocessing
import pathlib
import queue as queues
import threading
import time
from typing import Any

from rich import console, progress

from lstqueue.demo import play, report, trace

POLICIES = ("lst", "fifo")


def run(*, jobs: int, nodes: int, seed: int, json_path: pathlib.Path | None) -> int:
    """Run the demo; return the exit code, 1 when an invariant was broken or a job never ended."""
    terminal = console.Console()
    widest = max(job.gpus for job in trace.load(seed=seed, jobs=jobs))
    report.introduce(terminal, jobs=jobs, nodes=nodes, widest=widest)
    began = time.monotonic()
    plans = [play.Plan(order, jobs, nodes, seed) for order in POLICIES]
    outcomes = _play_all(plans, terminal)
    wall = time.monotonic() - began
    report.conclude(terminal, outcomes)
    if json_path is not None:
        json_path.write_text(json.dumps(report.figures(outcomes, wall), indent=2) + "\n", encoding="utf-8")
    sound = all(not outcome.violations and not outcome.unfinished for outcome in outcomes)
    return 0 if sound else 1


def _play_all(plans: list[play.Plan], terminal: console.Console) -> list[play.Outcome]:
    """Run each plan in a process of its own and show how far they are."""
    context = multiprocessing.get_context("spawn")
    with (
        context.Manager() as manager,
        concurrent.futures.ProcessPoolExecutor(len(plans), mp_context=context) as pool,
        _bars(terminal) as bars,
    ):
        news = manager.Queue()
        tasks = {
            plan.order: bars.add_task(report.NAMES[plan.order], total=plan.jobs, gpus=0, day=0.0)
            for plan in plans
        }
        futures = [pool.submit(_in_process, plan, news) for plan in plans]
        watching = threading.Thread(target=_watch, args=(news, bars, tasks))
        watching.start()
        try:
            return [future.result() for future in futures]
        finally:
            news.put(None)
            watching.join()


def _bars(terminal: console.Console) -> progress.Progress:
    return progress.Progress(
        progress.TextColumn("{task.description:<18}"),
        progress.BarColumn(bar_width=30),
        progress.MofNCompleteColumn(),
        progress.TextColumn("jobs done"),
        progress.TextColumn("day {task.fields[day]:4.1f}, {task.fields[gpus]:3} GPUs busy"),
        progress.TimeElapsedColumn(),
        console=terminal,
    )


def _watch(news: Any, bars: progress.Progress, tasks: dict[str, progress.TaskID]) -> None:
    while (item := news.get()) is not None:
        order, finished, gpus, seconds = item
        bars.update(tasks[order], completed=finished, gpus=gpus, day=seconds / 86_400)


def _in_process(plan: play.Plan, news: queues.Queue[Any]) -> play.Outcome:
    logging.basicConfig(level=logging.WARNING)
    return play.play(plan, lambda finished, gpus, seconds: news.put((plan.order, finished, gpus, seconds)))
