"""Which Jobs concern the operator, which DeadlineJob speaks for which, and what of them is remembered."""

import pytest

from cases import batch_jobs, raw
from lstqueue.api import times
from lstqueue.jobs import owners
from lstqueue.operator import ledger, units

MINUTE = 60_000


class Index:
    """Units, and the DeadlineJobs they asked to look at again."""

    def __init__(self):
        self.looked = []
        self.units = units.Units(self.looked.append, self.looked.append)

    def ledger(self, name="mine", job="sweep", *, age=0, unit="", phase="Pending"):
        made = raw.deadline_job(name)
        del made["spec"]["groups"]
        made["spec"]["jobRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": job}
        made["metadata"]["creationTimestamp"] = times.format(raw.NOW - age * MINUTE)
        made["status"] = {"phase": phase, "observedGeneration": 1, **({"jobUid": unit} if unit else {})}
        seen = ledger.read(made)
        self.units.refer(seen)
        return seen


def test_jobs_that_concern_nobody_are_forgotten_at_once():
    index = Index()
    index.units.apply("ADDED", batch_jobs.job("other", queue=None))
    assert index.units.entries == {}
    index.units.apply("ADDED", batch_jobs.job("labelled"))
    index.ledger(job="referred")
    index.units.apply("ADDED", batch_jobs.job("referred", queue=None))
    assert sorted(index.units.entries) == ["uid-labelled", "uid-referred"]


@pytest.mark.parametrize("settled", [True, False])
def test_a_job_that_loses_its_label_is_forgotten_and_an_older_reply_does_not_bring_it_back(settled):
    index = Index()
    if settled:
        index.units.settled()
    old, reply, bare = batch_jobs.job(), batch_jobs.job(), batch_jobs.job(queue=None)
    index.units.apply("ADDED", old)
    index.units.apply("MODIFIED", bare)
    assert index.units.entries == {}
    index.units.apply("MODIFIED", reply)
    assert index.units.entries == {}
    mine = index.ledger()
    assert (index.units.entry_of(mine) is None) is settled
    index.units.apply("MODIFIED", batch_jobs.job())
    assert index.units.entry_of(mine) is not None


def test_a_job_that_somebody_speaks_for_is_kept_without_its_label_until_that_is_gone():
    index = Index()
    mine = index.ledger()
    index.units.apply("ADDED", batch_jobs.job())
    index.units.apply("MODIFIED", batch_jobs.job(queue=None))
    assert list(index.units.entries) == ["uid-sweep"]
    index.units.forget(mine.uid)
    assert index.units.entries == {}


def test_a_reference_to_a_job_that_nobody_has_seen_is_to_be_looked_up():
    index = Index()
    mine = index.ledger(job="sweep")
    assert index.units.unseen == {("Job", "default", "sweep")}
    assert index.units.facts(mine, raw.NOW).unseen
    index.units.missing(("Job", "default", "sweep"))
    assert not index.units.facts(mine, raw.NOW).unseen
    assert index.looked[-1] == mine.uid
    index.units.apply("ADDED", batch_jobs.job("sweep", queue=None))
    assert index.units.entry_of(mine) is not None


def test_a_late_event_undoes_nothing():
    index = Index()
    older, newer = batch_jobs.job(suspend=True), batch_jobs.job(suspend=False)
    index.units.apply("ADDED", newer)
    index.units.apply("MODIFIED", older)
    assert not index.units.entries["uid-sweep"].view.suspended
    index.units.apply("DELETED", raw.touched(newer))
    index.units.apply("MODIFIED", newer)
    assert index.units.entries == {}


@pytest.mark.parametrize("end", ["watched", "listed"])
def test_no_reply_brings_a_deleted_job_back_however_late(end):
    index = Index()
    index.ledger()
    first = batch_jobs.job()
    index.units.apply("ADDED", first)
    told = {"metadata": {"uid": "uid-sweep", "resourceVersion": first["metadata"]["resourceVersion"]}}
    index.units.apply("DELETED", first if end == "watched" else told)
    index.units.apply("MODIFIED", batch_jobs.job())
    assert index.units.entries == {}


@pytest.mark.parametrize("known", [True, False], ids=["known", "never seen"])
def test_a_name_belongs_to_the_job_that_was_created_last(known):
    index = Index()
    index.ledger()
    early, late = batch_jobs.job(), batch_jobs.job()
    after = batch_jobs.job()
    after["metadata"]["uid"] = "uid-second"
    if known:
        index.units.apply("ADDED", early)
    index.units.apply("ADDED", after)
    index.units.apply("MODIFIED", late)
    assert list(index.units.entries) == ["uid-second"]


def test_a_job_of_the_same_name_is_not_the_one_that_was_spoken_for():
    index = Index()
    mine = index.ledger(unit="uid-first")
    index.units.apply("ADDED", batch_jobs.job())
    assert index.units.entry_of(mine) is None
    assert index.units.vanished(mine)


def test_success_that_was_seen_is_remembered_beyond_the_end_of_the_job():
    index = Index()
    mine = index.ledger(unit="uid-sweep")
    job = batch_jobs.job(status=raw.ended("Complete"))
    index.units.apply("ADDED", batch_jobs.job())
    index.units.apply("DELETED", job)
    facts = index.units.facts(mine, raw.NOW)
    assert (facts.vanished, facts.last.complete, facts.view) == (True, True, None)


def test_the_oldest_reference_speaks_for_a_job():
    index = Index()
    index.units.apply("ADDED", batch_jobs.job())
    entry = index.units.entries["uid-sweep"]
    younger, older = index.ledger("younger"), index.ledger("older", age=5)
    assert index.units.refusal(older, entry) == ("", "")
    assert index.units.refusal(younger, entry)[0] == "DuplicateReference"
    index.units.forget(older.uid)
    assert index.units.refusal(younger, entry) == ("", "")


def test_one_under_which_a_job_runs_is_not_deposed_by_an_older_one():
    index = Index()
    index.units.apply("ADDED", batch_jobs.job())
    entry = index.units.entries["uid-sweep"]
    running = index.ledger("younger", phase="Running", unit="uid-sweep")
    assert index.units.refusal(index.ledger("older", age=5), entry)[0] == "DuplicateReference"
    assert index.units.refusal(running, entry) == ("", "")


def test_a_reference_that_is_over_stands_in_nobodys_way():
    index = Index()
    index.units.apply("ADDED", batch_jobs.job())
    index.ledger("older", age=5, phase="Failed")
    assert index.units.refusal(index.ledger("younger"), index.units.entries["uid-sweep"]) == ("", "")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (owners.Found(), ""),
        (owners.Found(top=owners.Owner("batch/v1", "Job", "top", "u")), "LabelIgnored"),
        (owners.Found(unsupported=owners.Owner("ray.io/v1", "RayJob", "r", "u")), "UnsupportedOwner"),
        (owners.Found(unread=owners.Owner("argoproj.io/v1", "Workflow", "w", "u")), ""),
    ],
)
def test_a_place_below_others_is_told(found, reason):
    index = Index()
    index.units.apply("ADDED", batch_jobs.job())
    entry = index.units.entries["uid-sweep"]
    index.units.place(entry, found)
    assert index.units.misplaced(entry)[0] == reason


def test_jobs_share_an_unknown_owner_only_while_both_are_there():
    index, owner = Index(), owners.Owner("argoproj.io/v1", "Workflow", "w", "uid-w")
    for name in ("one", "two"):
        index.units.apply("ADDED", batch_jobs.job(name))
        index.units.place(index.units.entries[f"uid-{name}"], owners.Found(unread=owner))
    assert index.units.misplaced(index.units.entries["uid-one"])[0] == "SharedOwner"
    index.units.apply("MODIFIED", batch_jobs.job("two", status=raw.ended("Complete")))
    assert index.units.misplaced(index.units.entries["uid-one"]) == ("", "")


def test_a_dispute_begins_with_the_second_undone_suspension_and_ends_with_theirs():
    index = Index()
    mine = index.ledger()
    index.units.apply("ADDED", batch_jobs.job(suspend=False))
    for at in (0, 1):
        assert not index.units.facts(mine, raw.NOW + at * MINUTE).disputed
        index.units.was_suspended("uid-sweep", raw.NOW + at * MINUTE)
    assert index.units.facts(mine, raw.NOW + MINUTE).disputed
    assert index.units.facts(mine, raw.NOW + units.STANDOFF * 9).disputed
    index.units.apply("MODIFIED", batch_jobs.job(suspend=True))
    assert not index.units.facts(mine, raw.NOW + MINUTE).disputed


def test_suspensions_that_are_long_ago_are_no_dispute():
    index = Index()
    mine = index.ledger()
    index.units.apply("ADDED", batch_jobs.job(suspend=False))
    for at in (0, 11, 22):
        index.units.was_suspended("uid-sweep", raw.NOW + at * MINUTE)
        assert not index.units.facts(mine, raw.NOW + at * MINUTE).disputed


def test_other_managers_are_refused():
    index = Index()
    made = batch_jobs.job()
    made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team"
    index.units.apply("ADDED", made)
    assert index.units.refusal(index.ledger(), index.units.entries["uid-sweep"])[0] == "OtherManager"


def test_a_label_that_goes_leaves_what_is_referred_to():
    index = Index()
    index.units.apply("ADDED", batch_jobs.job())
    mine = index.ledger()
    index.units.apply("MODIFIED", batch_jobs.job(queue=None))
    assert index.units.entry_of(mine) is not None
    index.units.forget(mine.uid)
    assert index.units.entries == {}


def test_until_all_deadline_jobs_are_known_jobs_of_nobody_are_only_put_aside():
    index = Index()
    for name in ("referred", "deleted", "nobodys"):
        index.units.apply("ADDED", batch_jobs.job(name, queue=None))
    index.units.apply("DELETED", {"metadata": {"uid": "uid-deleted", "resourceVersion": raw.version()}})
    mine, late = index.ledger(job="referred"), index.ledger("late", job="deleted")
    assert index.units.entry_of(mine).view.uid == "uid-referred"
    assert index.units.entry_of(late) is None
    assert index.units.unseen == {("Job", "default", "deleted")}
    index.units.settled()
    assert index.units.entry_of(index.ledger("later", job="nobodys")) is None
    assert ("Job", "default", "nobodys") in index.units.unseen


def test_siblings_are_looked_at_when_the_second_comes_and_not_with_each():
    index, owner = Index(), owners.Owner("argoproj.io/v1", "Workflow", "w", "uid-w")
    touched = []
    for number in range(5):
        index.units.apply("ADDED", batch_jobs.job(f"job-{number}"))
        index.units.touched.clear()
        index.units.place(index.units.entries[f"uid-job-{number}"], owners.Found(unread=owner))
        touched.append(sorted(index.units.touched))
    assert touched == [[], ["uid-job-0", "uid-job-1"], ["uid-job-2"], ["uid-job-3"], ["uid-job-4"]]


@pytest.mark.parametrize("end", ["over", "deleted", "label"])
def test_the_last_of_several_siblings_is_looked_at_again(end):
    index, owner = Index(), owners.Owner("argoproj.io/v1", "Workflow", "w", "uid-w")
    for name in ("one", "two"):
        index.units.apply("ADDED", batch_jobs.job(name))
        index.units.place(index.units.entries[f"uid-{name}"], owners.Found(unread=owner))
    index.units.touched.clear()
    if end == "over":
        index.units.apply("MODIFIED", batch_jobs.job("two", status=raw.ended("Complete")))
    elif end == "deleted":
        index.units.apply("DELETED", batch_jobs.job("two"))
    else:
        index.ledger(job="two")
        index.units.apply("MODIFIED", batch_jobs.job("two", queue=None))
    assert "uid-one" in index.units.touched
    assert index.units.misplaced(index.units.entries["uid-one"]) == ("", "")
