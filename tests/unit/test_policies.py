"""The manifests of the admission policies, as far as they can be judged without a server."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import pytest
import yaml

from lstqueue.api import names
from lstqueue.jobs import kinds, owners

Object = dict[str, Any]

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "charts" / "lstqueue" / "policies"
FILES = sorted(FOLDER.glob("*.yaml"))
BOUND_EVERYWHERE = {"lstqueue-charges", "lstqueue-references"}
STARTED_BY_THEIR_OWNER = {
    f"{group}/{kind}" for (group, kind), role in owners.ROLES.items() if role is not owners.Role.TRANSPARENT
}
KIND = re.compile(r"'([a-z0-9.-]+/[A-Z]\w+)'")


def manifests(path: pathlib.Path) -> list[Object]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_a_policy_that_is_in_force(path: pathlib.Path) -> None:
    policy, binding = manifests(path)
    kind = policy["kind"]
    assert path.name.startswith(f"{kind.removesuffix('AdmissionPolicy').lower()}-")
    assert binding["kind"] == f"{kind}Binding"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"] == binding["metadata"]["name"]
    assert policy["apiVersion"] == binding["apiVersion"] == "admissionregistration.k8s.io/v1"
    assert policy["metadata"]["name"].startswith("lstqueue-")
    assert policy["spec"]["failurePolicy"] == "Fail"
    if kind == "ValidatingAdmissionPolicy":
        assert binding["spec"]["validationActions"] == ["Deny"]
    chosen = binding["spec"].get("matchResources", {})
    everywhere = policy["metadata"]["name"] in BOUND_EVERYWHERE
    labels = {"namespaceSelector": {"matchLabels": {f"{names.GROUP}/enforce": "true"}}}
    assert chosen == ({} if everywhere else labels)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_names_things_as_the_operator_does(path: pathlib.Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = set(re.findall(rf"{re.escape(names.GROUP)}/[a-z-]+", text))
    known = {names.LABEL_QUEUE, names.LABEL_JOB, names.ANNOTATION_CHARGE, names.GATE}
    assert used - known <= {f"{names.GROUP}/{name}" for name in ("enforce", "adopt")}


@pytest.mark.parametrize("name", ["mutating-jobs", "mutating-pytorchjobs", "validating-jobs"])
def test_the_kinds_whose_jobs_are_started_by_them_are_those_of_the_operator(name: str) -> None:
    listed = set(KIND.findall((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))
    assert listed == STARTED_BY_THEIR_OWNER


def test_every_kind_that_can_be_queued_is_met_at_creation_guarded_and_referred_to_by_right() -> None:
    wanted = {(adapter.RESOURCE.group, adapter.RESOURCE.plural) for adapter in kinds.ADAPTERS.values()}
    for stage in ("mutating", "validating"):
        rules = [
            rule
            for path in FOLDER.glob(f"{stage}-*jobs.yaml")
            for rule in manifests(path)[0]["spec"]["matchConstraints"]["resourceRules"]
        ]
        assert {(rule["apiGroups"][0], rule["resources"][0]) for rule in rules} == wanted
    text = (FOLDER / "validating-references.yaml").read_text(encoding="utf-8")
    for (api_version, kind), adapter in kinds.ADAPTERS.items():
        assert f"'{api_version}/{kind}': '{adapter.RESOURCE.plural}'" in text
