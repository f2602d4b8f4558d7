"""Answers of the API server, ordinary and odd, and what callers get to see of them."""

from __future__ import annotations

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import kube_fakes
from lstqueue.kube import port, wire


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", port.InvalidError),
        (401, "Unauthorized", port.UnavailableError),
        (403, "Forbidden", port.ForbiddenError),
        (404, "NotFound", port.NotFoundError),
        (405, "MethodNotAllowed", port.ApiError),
        (408, "Timeout", port.UnavailableError),
        (409, "AlreadyExists", port.ConflictError),
        (409, "Conflict", port.ConflictError),
        (410, "Expired", port.GoneError),
        (413, "RequestEntityTooLarge", port.InvalidError),
        (422, "Invalid", port.InvalidError),
        (429, "TooManyRequests", port.UnavailableError),
        (500, "InternalError", port.UnavailableError),
        (503, "ServiceUnavailable", port.UnavailableError),
        (504, "Timeout", port.UnavailableError),
    ],
)
def test_a_refusal_carries_class_reason_and_message(code, reason, expected):
    body = orjson.dumps(kube_fakes.status(code, reason, "because"))
    error = wire.refusal(code, "phrase", {}, body)
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "because")


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({}, {"retryAfterSeconds": 3}, 3.0),
        ({"Retry-After": "2"}, {"retryAfterSeconds": 9}, 2.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
        ({"Retry-After": "-1"}, {}, None),
        ({"Retry-After": "inf"}, {}, None),
        ({"Retry-After": "nan"}, {}, None),
        ({}, {"retryAfterSeconds": 0}, None),
        ({}, None, None),
    ],
)
def test_a_refusal_says_when_to_come_back_if_the_server_did(headers, details, expected):
    body = orjson.dumps(kube_fakes.status(429, "TooManyRequests", details=details))
    assert wire.refusal(429, "", headers, body).retry_after == expected


@pytest.mark.parametrize(
    "body",
    [b"<html>502 Bad Gateway</html>", b"", b"\xff\xfe\x00", b"[]", b'"text"', b"x" * 100_000],
)
def test_a_proxys_page_becomes_an_error_of_bounded_length(body):
    error = wire.refusal(502, "Bad Gateway", {}, body)
    assert isinstance(error, port.UnavailableError)
    assert error.reason == "Bad Gateway"
    assert len(str(error)) < 400


def test_an_object_in_an_error_answer_is_not_mistaken_for_a_status():
    error = wire.refusal(409, "Conflict", {}, orjson.dumps({"kind": "Pod", "reason": 5, "message": "no"}))
    assert (error.reason, error.message) == ("Conflict", "no message")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[1]", b"\xff", b'{"items": []}', b'{"metadata": {}, "items": []}']
)
def test_an_unreadable_list_is_unavailable_with_status_0(body):
    with pytest.raises(port.UnavailableError) as caught:
        wire.page(port.PODS, body)
    assert caught.value.status == 0


def test_listed_items_get_the_kind_that_servers_leave_out():
    body = orjson.dumps({"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]})
    item = wire.page(port.JOBS, body).items[0]
    assert (item["apiVersion"], item["kind"]) == ("batch/v1", "Job")


def test_a_list_without_items_is_empty():
    page = wire.page(port.PODS, b'{"metadata": {"resourceVersion": "5", "continue": null}, "items": null}')
    assert page == port.Page([], "5", "")


@pytest.mark.parametrize(
    ("body", "expected", "code"),
    [
        (kube_fakes.status(410, "Expired"), port.GoneError, 410),
        ({"kind": "Status", "reason": "Gone"}, port.GoneError, 410),
        (kube_fakes.status(500, "InternalError"), port.UnavailableError, 500),
        ({}, port.UnavailableError, 500),
        (kube_fakes.status(403, "Forbidden"), port.ForbiddenError, 403),
    ],
)
def test_an_error_event_is_raised_as_the_same_refusal(body, expected, code):
    with pytest.raises(port.ApiError) as caught:
        wire.event(orjson.dumps({"type": "ERROR", "object": body}))
    assert type(caught.value) is expected
    assert caught.value.status == code


@pytest.mark.parametrize(
    "line",
    [b"{}", b'{"type": "ADDED"}', b'{"type": 1, "object": {}}', b'{"type": "ERROR", "object": 3}', b"x"],
)
def test_a_line_that_is_no_event_is_unavailable_with_status_0(line):
    with pytest.raises(port.UnavailableError) as caught:
        wire.event(line)
    assert caught.value.status == 0


@given(
    lines=st.lists(st.binary(min_size=1, max_size=40).filter(lambda b: b"\n" not in b and not b.isspace())),
    cuts=st.lists(st.integers(0, 400)),
)
def test_lines_are_the_same_however_the_stream_is_chunked(lines, cuts):
    stream = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    cutter = wire.Lines()
    found = []
    for start, stop in itertools.pairwise(edges):
        found += cutter.feed(stream[start:stop])
    cutter.end()
    assert found == lines


def test_blank_lines_are_no_lines():
    assert wire.Lines().feed(b"\n\r\n  \na\n") == [b"a"]


def test_a_stream_that_ends_inside_a_line_was_cut():
    cutter = wire.Lines()
    assert cutter.feed(b"one\ntw") == [b"one"]
    with pytest.raises(port.UnavailableError, match="cut"):
        cutter.end()


def test_a_line_without_end_is_given_up():
    cutter = wire.Lines(limit=1000)
    assert [cutter.feed(b"x" * 100) for _ in range(10)] == [[]] * 10
    with pytest.raises(port.UnavailableError, match="more than 1000 bytes"):
        cutter.feed(b"x")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a\nb", "../secrets/x"])
def test_a_name_that_would_address_something_else_is_refused(name):
    with pytest.raises(port.InvalidError, match=r"metadata\.name of a Pod"):
        wire.object_path(port.PODS, "default", name)
    with pytest.raises(port.InvalidError, match=r"metadata\.namespace of a Pod"):
        wire.object_path(port.PODS, name, "a")


def test_a_namespaced_object_needs_its_namespace_and_a_cluster_scoped_one_none():
    with pytest.raises(port.InvalidError, match="namespace"):
        wire.object_path(port.PODS, None, "a")
    assert wire.object_path(port.NODES, None, "a") == "/api/v1/nodes/a"
    assert wire.collection_path(port.PODS, None) == "/api/v1/pods"


def test_what_a_path_cannot_hold_is_quoted():
    assert wire.object_path(port.NODES, None, "é?#") == "/api/v1/nodes/%C3%A9%3F%23"
