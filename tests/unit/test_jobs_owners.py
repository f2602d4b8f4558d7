"""The queued unit is the topmost supported kind above a Job."""

from cases import batch_jobs
from lstqueue.api import names
from lstqueue.jobs import owners


def owner(kind, name="above", api_version="batch/v1"):
    return owners.Owner(api_version, kind, name, f"uid-{name}")


def test_a_job_of_its_own_is_the_unit():
    assert owners.walk(None, {}) == owners.Found()


def test_a_cron_job_is_looked_through():
    cron = owner("CronJob")
    assert owners.walk(cron, {}).ask == cron
    assert owners.walk(cron, {cron.uid: owners.Known()}) == owners.Found()


def test_the_topmost_job_is_the_unit():
    middle, top = owner("Job", "middle"), owner("Job", "top")
    known = {middle.uid: owners.Known(owner=top), top.uid: owners.Known()}
    assert owners.walk(middle, known).top == top


def test_kinds_that_queue_their_jobs_themselves_are_named():
    for kind, api in (("JobSet", "jobset.x-k8s.io/v1alpha2"), ("MPIJob", "kubeflow.org/v2beta1")):
        above = owner(kind, api_version=api)
        assert owners.walk(above, {}).unsupported == above
        cron = owner("CronJob", "cron")
        assert owners.walk(cron, {cron.uid: owners.Known(owner=above)}).unsupported == above


def test_an_owner_that_cannot_be_read_ends_the_walk():
    above = owner("Workflow", api_version="argoproj.io/v1alpha1")
    found = owners.walk(above, {})
    assert (found.top, found.unread, found.ask) == (None, above, None)


def test_children_of_a_deadline_job_are_ours():
    assert owners.walk(owner("DeadlineJob", api_version=names.API_VERSION), {}).ours


def test_an_owner_of_another_uid_is_gone():
    above = owner("Job")
    seen = batch_jobs.job("above")
    assert owners.read(above, seen) == owners.Known()
    seen["metadata"]["uid"] = "uid-of-the-next"
    assert owners.read(above, seen).gone
    assert owners.read(above, None).gone
    assert owners.walk(above, {above.uid: owners.Known(gone=True)}) == owners.Found()


def test_a_ring_of_owners_ends():
    one, two = owner("Job", "one"), owner("Job", "two")
    known = {one.uid: owners.Known(owner=two), two.uid: owners.Known(owner=one)}
    assert owners.walk(one, known).ask is None


def test_only_the_controller_counts():
    reference = batch_jobs.owned_by("CronJob")
    job = batch_jobs.job(owner={**reference, "controller": False})
    assert owners.controller(job["metadata"]) is None
    assert owners.controller(batch_jobs.job(owner=reference)["metadata"]) == owner("CronJob")
