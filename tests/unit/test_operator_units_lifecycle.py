"""What an existing Job needs next, by its phase: the steps that the scenarios do not show one by one."""

import dataclasses

import pytest

from cases import batch_jobs, raw
from lstqueue.api import names
from lstqueue.engine import model
from lstqueue.jobs import batch, existing
from lstqueue.operator import gone, ledger, lifecycle, members, units

UID = "uid-ledger"
PHASE = ledger.Phase
NODES = ("n1", "n2")


def admission(view, nodes=NODES):
    placed = tuple((node, (rank,)) for rank, node in enumerate(nodes))
    groups = (ledger.GroupAdmission(existing.GROUP, "a100", placed),)
    return ledger.Admission(at=raw.NOW, queue="research", shape=view.shape, groups=groups, job_uid=view.uid)


def gang(job, phase=PHASE.PENDING, *, pods=(), attempt=0, admitted=False, unfit=(), spec=None, **facts):
    """Everything the lifecycle looks at, around one Job."""
    view = batch.unit(job)
    status = ledger.Status(
        phase=phase,
        observed=1,
        attempt=attempt,
        unit=view.uid,
        admission=admission(view) if admitted else None,
        started=raw.NOW if phase is PHASE.RUNNING else 0,
    )
    asked = ledger.Spec(
        queue="research",
        groups=((existing.GROUP, view.size),),
        shape=view.shape,
        ref=ledger.JobRef("batch/v1", "Job", view.name),
        **(spec or {}),
    )
    seen = ledger.Ledger(UID, "default", "mine", 1, 1, raw.NOW, False, asked, "", status)
    if not view.ranked:
        pods = tuple(dataclasses.replace(pod, index=pod.slot) for pod in pods)
    known = units.Facts(**{"view": view, "hands_off": False, "now": raw.NOW, "queue": "research", **facts})
    return members.Gang(
        ledger=seen,
        children=(),
        pods=pods,
        ungated_at=0,
        bind_timeout=120_000,
        ready_timeout=1_800_000,
        fit_node=lambda _, node: node not in unfit,
        unit=known,
    )


def step(given):
    return lifecycle.step(given, raw.NOW)


def job(**given):
    return batch_jobs.job(**{"parallelism": 2, "completions": 2, **given})


def released(made, attempt=1, suspend=False):
    made["metadata"]["labels"] |= {names.LABEL_JOB: UID, names.LABEL_ATTEMPT: str(attempt)}
    made["spec"]["suspend"] = suspend
    return made


def pods(made, phase="Running", attempt=1):
    return tuple(
        batch_jobs.pod(made, f"p{index}", index=index, gated=False, node=node, phase=phase, attempt=attempt)
        for index, node in enumerate(NODES)
    )


def test_an_admitted_job_is_released_by_one_conditional_patch():
    made = job()
    found = step(gang(made, PHASE.ADMITTED, attempt=1, admitted=True))
    (patch,) = found.patches
    assert found.start
    assert patch.body["spec"]["suspend"] is False
    assert patch.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_a_template_that_is_frozen_by_its_start_is_thawed_first():
    made = job(status={"startTime": "2026-03-01T12:00:00Z"})
    (patch,) = step(gang(made, PHASE.ADMITTED, attempt=1, admitted=True)).patches
    assert (patch.subresource, patch.body["status"]) == ("status", {"startTime": None})


def test_a_template_that_is_ours_already_stays_frozen():
    made = job(status={"startTime": "2026-03-01T12:00:00Z"})
    template = batch.release(batch.unit(made), job=UID, attempt=1)["spec"]["template"]
    made["spec"]["template"]["spec"] |= template["spec"]
    made["spec"]["template"]["metadata"]["labels"] |= template["metadata"]["labels"]
    (patch,) = step(gang(made, PHASE.ADMITTED, attempt=2, admitted=True)).patches
    assert patch.body["spec"] == {"suspend": False}


def test_no_release_while_pods_of_the_last_run_are_there():
    made = job()
    found = step(gang(made, PHASE.ADMITTED, attempt=2, admitted=True, pods=pods(made, attempt=1)))
    assert found.patches == ()


def test_an_unfit_node_before_the_release_rolls_back():
    found = step(gang(job(), PHASE.ADMITTED, attempt=1, admitted=True, unfit={"n2"}))
    assert (found.status.phase, found.status.admission) == (PHASE.PENDING, None)


def test_a_job_resumed_by_somebody_else_between_decision_and_release_is_given_back():
    found = step(gang(job(suspend=False), PHASE.ADMITTED, attempt=1, admitted=True))
    assert (found.status.phase, found.why) == (PHASE.PENDING, "ResumedByHand")


def test_what_a_queue_that_only_observes_has_admitted_is_given_back():
    found = step(gang(job(), PHASE.ADMITTED, attempt=1, admitted=True, hands_off=True))
    assert (found.status.phase, found.patches) == (PHASE.PENDING, ())


@pytest.mark.parametrize("phase", [PHASE.PENDING, PHASE.CLAIMING])
def test_what_runs_without_an_admission_is_suspended(phase):
    given = gang(job(suspend=False), phase, attempt=1)
    if phase is PHASE.CLAIMING:
        claim = model.Claim((), (), raw.NOW)
        status = dataclasses.replace(given.ledger.status, claim=claim)
        given = dataclasses.replace(given, ledger=dataclasses.replace(given.ledger, status=status))
    found = step(given)
    assert found.sudden
    assert found.patches[0].body["spec"] == {"suspend": True}


@pytest.mark.parametrize("facts", [{"hands_off": True}, {"disputed": True}])
def test_what_runs_is_left_alone_where_we_may_not_or_should_not(facts):
    assert step(gang(job(suspend=False), attempt=1, **facts)).patches == ()


def test_suspending_goes_on_even_where_the_queue_only_observes_now():
    made = released(job())
    found = step(gang(made, PHASE.SUSPENDING, attempt=1, pods=pods(made), hands_off=True))
    assert found.patches[0].body["spec"] == {"suspend": True}


def test_a_rejected_job_is_never_touched():
    assert step(gang(job(suspend=False), PHASE.REJECTED)).idle


def test_a_job_whose_run_was_ended_for_good_is_stopped():
    found = step(gang(released(job()), PHASE.FAILED, attempt=1))
    assert found.patches[0].body["spec"] == {"suspend": True}


def test_a_replacement_goes_to_its_recorded_node():
    made = released(job())
    fresh = batch_jobs.pod(made, "new", index=1)
    found = step(gang(made, PHASE.RUNNING, attempt=1, admitted=True, pods=(pods(made)[0], fresh)))
    assert [(pod.name, node, rank) for pod, _, node, rank in found.ungate] == [("sweep-new", "n2", 1)]


def test_a_replacement_whose_node_is_unfit_has_the_gang_queued_again():
    made = released(job())
    fresh = batch_jobs.pod(made, "new", index=1)
    given = gang(made, PHASE.RUNNING, attempt=1, admitted=True, pods=(pods(made)[0], fresh), unfit={"n2"})
    found = step(given)
    assert (found.status.phase, found.status.suspension) == (PHASE.SUSPENDING, "NodeUnfit")
    assert found.status.back_off.avoid == ("n2",)


def test_a_replacement_whose_node_is_unfit_moves_alone_where_its_domain_has_another():
    made = released(job())
    fresh = batch_jobs.pod(made, "new", index=1)
    given = gang(made, PHASE.RUNNING, attempt=1, admitted=True, pods=(pods(made)[0], fresh), unfit={"n2"})
    found = step(dataclasses.replace(given, other_node=lambda group, node: f"beside-{node}"))
    assert (found.status.phase, found.why) == (PHASE.RUNNING, "RankMoved")
    before, after = given.ledger.status.admission.places(), found.status.admission.places()
    assert after == before | {1: (before[1][0], "beside-n2")}
    assert not found.ungate  # what is written goes first


def test_a_job_that_was_changed_in_flight_gives_its_admission_up():
    made = released(job())
    given = gang(made, PHASE.RUNNING, attempt=1, admitted=True, pods=pods(made))
    spec = dataclasses.replace(given.ledger.spec, shape="another")
    found = step(dataclasses.replace(given, ledger=dataclasses.replace(given.ledger, spec=spec)))
    assert (found.status.phase, found.status.suspension) == (PHASE.SUSPENDING, "ShapeChanged")


def test_a_vanished_job_ends_well_only_if_that_was_seen():
    given = gang(released(job()), PHASE.RUNNING, attempt=1, admitted=True)
    absent = dataclasses.replace(given.unit, view=None, vanished=True)
    found = step(dataclasses.replace(given, unit=absent))
    assert (found.status.phase, found.why) == (PHASE.FAILED, "JobVanished")
    seen = dataclasses.replace(absent, last=gone.Last(complete=True))
    assert step(dataclasses.replace(given, unit=seen)).status.phase is PHASE.SUCCEEDED


def test_adoption_waits_for_every_pod_and_one_pool():
    made = job(suspend=False, annotations={f"{names.GROUP}/adopt": "true"})
    loose = tuple(dataclasses.replace(pod, job="", attempt=-1) for pod in pods(made))
    in_pool = {"pool_of": lambda _: "a100"}
    assert step(gang(made, loose=loose[:1], **in_pool)).idle
    assert step(gang(made, loose=loose)).idle
    found = step(gang(made, loose=loose, **in_pool))
    assert (found.status.phase, found.status.attempt) == (PHASE.RUNNING, 1)
    assert found.status.admission.places() == {0: ("a100", "n1"), 1: ("a100", "n2")}


def test_pods_behind_our_gate_cannot_be_adopted():
    made = released(job(annotations={f"{names.GROUP}/adopt": "true"}))
    gated = tuple(batch_jobs.pod(made, f"p{index}", index=index) for index in range(2))
    found = step(gang(made, loose=gated, pool_of=lambda _: "a100"))
    assert found.patches[0].body["spec"] == {"suspend": True}


def test_a_gang_costs_a_look_at_each_of_its_nodes_however_many_pods_are_there():
    made, fit, lost = job(parallelism=4, completions=4), [], []
    asked = {
        "fit_node": lambda _, node: not fit.append(node),
        "lost": lambda pod: lost.append(pod.node) or "",
    }
    placed = dataclasses.replace(
        admission(batch.unit(made), ()),
        groups=(ledger.GroupAdmission(existing.GROUP, "a100", (("n1", (0, 1)), ("n2", (2, 3)))),),
    )
    waits = gang(made, PHASE.ADMITTED, attempt=1, admitted=True)
    status = dataclasses.replace(waits.ledger.status, admission=placed)
    waits = dataclasses.replace(waits, ledger=dataclasses.replace(waits.ledger, status=status), **asked)
    assert step(waits).start
    assert fit == ["n1", "n2"]
    running = released(made)
    members_ = [
        batch_jobs.pod(running, f"i{index}", index=index, gated=False, slot=index, node=node, phase="Running")
        for index, node in enumerate(("n1", "n1", "n2", "n2"))
    ]
    runs = gang(running, PHASE.RUNNING, attempt=1, admitted=True, pods=tuple(members_))
    step(dataclasses.replace(runs, **asked))
    assert lost == ["n1", "n2"]
