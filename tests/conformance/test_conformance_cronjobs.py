"""CronJobs: their rules, and the Jobs that come of them."""

from typing import Any

import pytest

from lstqueue.kube import port
from tests.conformance.live import Cluster, live
from tests.conformance.samples import Object, job, refused

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def cron(name: str = "cron", schedule: str = "* * * * *", **spec: Any) -> Object:
    template = {"metadata": {"labels": {"made": "by-cron"}}, "spec": job(parallelism=0)["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


async def test_defaults(api: port.KubeApi, namespace: str) -> None:
    created = await api.create(port.CRON_JOBS, namespace, cron())
    spec = created["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert "backoffLimit" not in spec["jobTemplate"]["spec"]
    assert created["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    "schedule", ["@daily", "*/7 1-5 * jan mon-fri", "? * * * *", "5/15 * * * *", "0 0 31 2 *"]
)
async def test_schedules_that_are_accepted(api: port.KubeApi, namespace: str, schedule: str) -> None:
    assert await api.create(port.CRON_JOBS, namespace, cron(schedule=schedule), dry_run=True)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "a word",
        {"schedule": "soon"},
        'spec.schedule: Invalid value: "soon": expected exactly 5 fields, found 1: [soon]',
    ),
    ("nothing", {"schedule": ""}, "spec.schedule: Required value"),
    ("minute 61", {"schedule": "61 * * * *"}, "end of range (61) above maximum (59): 61"),
    ("Sunday as 7", {"schedule": "0 0 * * 7"}, "end of range (7) above maximum (6): 7"),
    ("backwards", {"schedule": "5-1 * * * *"}, "beginning of range (5) beyond end of range (1): 5-1"),
    ("zone in the schedule", {"schedule": "TZ=UTC * * * * *"}, "use timeZone field instead"),
    ("unknown zone", {"timeZone": "Mars/Base"}, "unknown time zone Mars/Base"),
    ("local zone", {"timeZone": "Local"}, "must be an explicit time zone"),
    ("unknown policy", {"concurrencyPolicy": "Maybe"}, "spec.concurrencyPolicy"),
    ("negative history", {"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit"),
    (
        "broken template",
        {"jobTemplate": {"spec": job(parallelism=-1)["spec"]}},
        "spec.jobTemplate.spec.parallelism",
    ),
]


@pytest.mark.parametrize(("spec", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
async def test_what_is_refused(api: port.KubeApi, namespace: str, spec: dict[str, Any], words: str) -> None:
    body = cron()
    body["spec"].update(spec)
    await refused(api.create(port.CRON_JOBS, namespace, body), 422, reason="Invalid", says=words)


async def test_names_leave_room_for_a_time(api: port.KubeApi, namespace: str) -> None:
    assert await api.create(port.CRON_JOBS, namespace, cron("x" * 52, suspend=True))
    await refused(api.create(port.CRON_JOBS, namespace, cron("y" * 53)), 422, says="metadata.name")


@live
async def test_a_job_is_made_at_each_time(cluster: Cluster) -> None:
    created = await cluster.create(cron(schedule="@every 2s", timeZone="Europe/Berlin"), port.CRON_JOBS)
    made = await cluster.until_listed(port.JOBS, "made=by-cron")
    (first, *_) = made
    owner = first["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("CronJob", created["metadata"]["uid"], True)
    assert first["metadata"]["name"].startswith("cron-")
    assert first["metadata"]["annotations"][SCHEDULED][-6:] in ("+01:00", "+02:00")
    status = (await cluster.api.get(port.CRON_JOBS, cluster.namespace, "cron"))["status"]
    assert first["metadata"]["uid"] in [item["uid"] for item in status["active"]]
    assert status["lastScheduleTime"]
    await cluster.api.patch(port.CRON_JOBS, cluster.namespace, "cron", {"spec": {"suspend": True}})
