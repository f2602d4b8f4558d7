"""Which jobs are taken for the same work: not what changes from night to night matters, but what they do."""

from __future__ import annotations

from typing import Any

import pytest

from lstqueue.api import names
from lstqueue.jobs import likeness

Object = dict[str, Any]


def template(*, image: str = "reg.example:5000/me/train:1", gpus: int = 8, **container: Any) -> Object:
    main = {"name": "main", "image": image, "resources": {"limits": {"nvidia.com/gpu": gpus}}, **container}
    return {"spec": {"containers": [main]}}


def alike(one: Object, other: Object) -> bool:
    return likeness.digest([one]) == likeness.digest([other])


@pytest.mark.parametrize(
    ("tonight", "yesterday"),
    [
        ("--date=2024-11-30", "--date=2024-11-29"),
        ("--date=2024-11-30T06:00:00Z", "--date=2024-11-29T23:59:59Z"),
        ("--day=30-Nov-2024", "--day=1-Dec-2024"),
        ("s3://data/2024/11/30/part.parquet", "s3://data/2024/12/01/part.parquet"),
        ("--run-id=8f14e45f-ceea-467f-a8f5-1b2c3d4e5f60", "--run-id=0cc175b9-c0f1-b6a8-31c3-99e269772661"),
        (
            "--commit=4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "--commit=9daeafb9864cf43055ae93beb0afd6c7d144bfa4",
        ),
        ("--seed=3", "--seed=17"),
        ("--lr=0.01", "--lr=1e-4"),
        ("python train.py --epoch 3\npython test.py", "python train.py --epoch 10\npython test.py"),
    ],
)
def test_what_changes_from_night_to_night_does_not_matter(tonight: str, yesterday: str) -> None:
    assert alike(template(args=[tonight]), template(args=[yesterday]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("reg.example:5000/me/train:1", "reg.example:5000/me/train:2024-11-30"),
        ("train", "train@sha256:0123"),
        ("me/train:1@sha256:0123", "me/train"),
    ],
)
def test_the_tag_of_an_image_does_not_matter(one: str, other: str) -> None:
    assert alike(template(image=one), template(image=other))


def test_environment_volumes_and_names_do_not_matter() -> None:
    other = template(env=[{"name": "RUN", "value": "x"}])
    other["metadata"] = {"name": "x", "labels": {"run": "x"}}
    other["spec"]["volumes"] = [{"name": "scratch"}]
    assert alike(template(), other)


@pytest.mark.parametrize(
    "other",
    [
        template(image="reg.example:5000/me/serve:1"),
        template(image="other.example:5000/me/train:1"),
        template(gpus=4),
        template(command=["python", "eval.py"]),
        template(args=["--fast"]),
        {"spec": {"containers": [*template()["spec"]["containers"], {"name": "side", "image": "proxy"}]}},
    ],
)
def test_what_a_pod_does_and_takes_matters(other: Object) -> None:
    assert not alike(template(), other)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"spec": None},
        {"spec": {"containers": "x"}},
        {"spec": {"containers": [None, 7, {"args": 5}]}},
        None,
    ],
)
def test_nobody_has_judged_a_template_yet(odd: Any) -> None:
    assert len(likeness.digest([odd])) == 16


def test_long_scripts_cost_what_is_looked_at() -> None:
    start = "python train.py "
    assert alike(template(args=[start + "a" * 30_000]), template(args=[start + "a" * 40_000 + "b"]))


def test_size_and_labels_are_kept_apart() -> None:
    raw = {
        "metadata": {"labels": {names.LABEL_USER: "ann", names.LABEL_HISTORY: "nightly"}},
        "spec": {"parallelism": 4, "completions": 100, "activeDeadlineSeconds": 3600, "template": template()},
    }
    work = likeness.of_job(raw)
    assert (work.owner, work.name, work.size, work.limit) == ("ann", "nightly", "4/100", 3_600_000)
    groups = {"spec": {"groups": [{"replicas": 1, "template": template()}, {"replicas": 7}]}}
    assert likeness.of_groups(groups).size == "1+7"
    assert likeness.of_groups({"spec": {}}) == likeness.UNKNOWN


def test_a_progress_of_any_length_is_cut() -> None:
    assert len(likeness.progress({"annotations": {names.ANNOTATION_PROGRESS: "9" * 5000}})) == likeness.SHOWN
