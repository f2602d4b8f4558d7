"""What the CRDs accept and refuse: one table for the Python twins and for a real API server.

Every object is complete. To run a case on a server: create `old` if there is one, write its status through
the status subresource if it has one, then write `new`: as a creation, or over `old` with the resourceVersion
it then has, on the status subresource where the case says so. Names repeat, so delete the object afterwards.
A refusal is 422 and has, among its causes, one whose field and message contain the fragments of the case.
"""

from __future__ import annotations

import copy

from cases import (
    crd_case,
    crd_rules_changes,
    crd_rules_interconnects,
    crd_rules_jobs,
    crd_rules_queues,
    crd_rules_stage,
)

Case = crd_case.Case

CASES: tuple[Case, ...] = tuple(
    copy.deepcopy(case)
    for cases in (
        crd_rules_jobs.specs,
        crd_rules_jobs.groups,
        crd_rules_changes.specs,
        crd_rules_changes.statuses,
        crd_rules_queues.specs,
        crd_rules_interconnects.specs,
        crd_rules_stage.deadlines,
        crd_rules_stage.references,
        crd_rules_stage.runs,
        crd_rules_stage.queues,
    )
    for case in cases()
)
