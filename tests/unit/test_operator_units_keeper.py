"""The DeadlineJob that stands for a labelled Job: its name, its spec, and how edits follow into it."""

from cases import batch_jobs, raw
from lstqueue.api import annotations, names, times
from lstqueue.jobs import batch
from lstqueue.operator import keeper, ledger


def view(name="sweep", uid="0123456789abcdef"):
    made = batch_jobs.job(name)
    made["metadata"]["uid"] = uid
    return batch.unit(made)


def reading(**said):
    named = {f"{names.GROUP}/{key.replace('_', '-')}": value for key, value in said.items()}
    return annotations.read({names.LABEL_QUEUE: "research"}, named)


def standing(asked, **spec):
    made = keeper.manifest(view(), asked, name="job-sweep-012345")
    made["spec"] |= spec
    made["metadata"] |= {
        "uid": "uid-ledger",
        "resourceVersion": raw.version(),
        "generation": 1,
        "creationTimestamp": times.format(raw.NOW),
    }
    return ledger.read(made)


def test_names_are_derived_from_the_job_and_always_fit():
    first, second = keeper.names_for(view())
    assert first == "job-sweep-012345"
    assert second.startswith("job-sweep-012345-")
    (hashed,) = keeper.names_for(view("s" * 63))
    assert len(hashed) <= 63
    assert keeper.names_for(view("s" * 63)) == (hashed,)
    assert keeper.names_for(view("s" * 63, uid="another-uid")) != (hashed,)


def test_the_deadline_job_says_what_the_labels_and_annotations_say():
    made = standing(reading(deadline_in="6h", estimated_duration="1h"))
    assert made.problem == ""
    assert (made.spec.queue, made.spec.estimate) == ("research", 3_600_000)
    assert made.spec.ref == ledger.JobRef("batch/v1", "Job", "sweep")
    assert made.unit_uid == "0123456789abcdef"
    assert made.spec.deadline == raw.NOW + 6 * raw.HOUR


def test_what_is_in_step_needs_no_patch():
    asked = reading(deadline_in="6h")
    assert keeper.difference(standing(asked), asked) == {}


def test_edits_follow_and_what_goes_is_taken_back():
    made = standing(reading(deadline_in="6h", value="3"), importance=2)
    patch = keeper.difference(made, reading(deadline_in="8h"))
    assert patch["spec"] == {"deadlineIn": "8h", "value": None}
    assert patch["metadata"]["resourceVersion"] == str(made.version)
    assert "importance" not in patch["spec"]


def test_one_form_of_deadline_takes_the_place_of_another():
    patch = keeper.difference(standing(reading(deadline_in="6h")), reading(deadline_at="06:00 Europe/Berlin"))
    assert patch["spec"]["deadlineIn"] is None
    assert patch["spec"]["deadlineAt"] == {"time": "06:00", "zone": "Europe/Berlin"}


def test_a_part_of_an_object_is_taken_back_alone():
    made = standing(reading(checkpoint_interval="10m", restart_overhead="1m"))
    patch = keeper.difference(made, reading(restart_overhead="2m"))
    assert patch["spec"]["checkpoint"] == {"interval": None, "restartOverhead": "2m"}
