"""Which refusals of a gang's pods end a job, and which may pass."""

import pytest

from cases import raw
from lstqueue.jobs import batch
from lstqueue.kube import port
from lstqueue.operator import intake, ledger

HOOK = 'admission webhook "policy.example" denied the request: no image of ours'
POLICY = "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"


class Refusing:
    """An API server that takes no pod."""

    def __init__(self, error):
        self.error = error

    async def create(self, resource, namespace, body, *, dry_run):
        raise self.error


@pytest.mark.parametrize(
    ("status", "message", "final"),
    [
        (422, 'Pod "x" is invalid: spec.containers[0].name: Required value', True),
        (422, 'Pod "x" is invalid: spec.hostIPC: Forbidden: may not be set', True),
        (400, 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal', True),
        (400, HOOK, False),
        (422, HOOK, False),
        (422, POLICY, False),
    ],
)
async def test_only_the_servers_own_validation_ends_a_job(status, message, final):
    job = ledger.read(raw.deadline_job())
    templates = {"worker": raw.deadline_job()["spec"]["groups"][0]["template"]}
    refused = port.InvalidError(status, "Invalid", message)
    asked = intake.Intake(Refusing(refused), now=lambda: raw.NOW, interval=raw.MINUTE)
    answer = await asked.ask(job.gang(), job.spec.shape, templates)
    assert (answer.groups, answer.final) == (None, final)
    assert message in answer.problem


class OverQuota:
    """An API server that takes no pod and names the one it was shown, as the real one does."""

    async def create(self, resource, namespace, body, *, dry_run):
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}x7k2f"
        raise port.ForbiddenError(403, "Forbidden", f'pods "{name}" is forbidden: exceeded quota: compute')


@pytest.mark.parametrize("adapter", [None, batch])
async def test_an_answer_that_all_equal_gangs_get_names_none_of_them(adapter):
    job = ledger.read(raw.deadline_job())
    templates = {"worker": raw.deadline_job()["spec"]["groups"][0]["template"]}
    asked = intake.Intake(OverQuota(), now=lambda: raw.NOW, interval=raw.MINUTE)
    answer = await asked.ask(job.gang(), job.spec.shape, templates, adapter=adapter)
    assert "exceeded quota: compute" in answer.problem
    assert job.name not in answer.problem
    assert answer.words("Job sweep").startswith("Job sweep: ")
