"""Whatever is done to a trace's file, it is read or refused by name, and what is read keeps the rules."""

from __future__ import annotations

import gzip
import pathlib
import tempfile

import hypothesis
from hypothesis import strategies as st

from cases import effort
from cases import trace_files as files
from lstqueue.evaluate import traces, workload

OWN = "key,submit_ms,duration_ms,pods,deadline_ms,value\na,0,5,2x8,9,1\nb,3,5,1x4+1x2,,2\n"
JSON = (
    '{"key": "a", "submit_ms": 0, "duration_ms": 5, "gpus": 3, "deadline_ms": 7}\n'
    '{"key": "b", "submit_ms": 1, "duration_ms": 5,'
    ' "pods": [{"count": 2, "requests": {"nvidia.com/gpu": 4}}]}\n'
)
SAMPLES = [
    ("elasticflow", files.ELASTICFLOW),
    ("chronus", files.CHRONUS),
    ("philly", files.PHILLY),
    ("openb", files.OPENB),
    ("swf", files.SWF),
    ("lstqueue", OWN),
    ("lstqueue", JSON),
]
HOSTILE = [
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b",", b"\n", b"\r", b"-", b"nan", b"NaN", b"inf",
    b"1e400", b"1e-400", b"9" * 400, b"-1", b"0", b"{", b"}", b"[", b"null", b"true", "１".encode(),
    b"\x1b[0m", b" ", b";",
]  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """A sample with a few bytes replaced, cut, put in or doubled, perhaps packed and then cut."""
    form, text = draw(st.sampled_from(SAMPLES))
    content = text.encode()
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(content)))
        end = min(len(content), begin + draw(st.integers(0, 12)))
        piece = draw(st.sampled_from(HOSTILE) | st.binary(max_size=6) | st.just(content[begin:end] * 2))
        content = content[:begin] + piece + content[end:]
    if draw(st.booleans()):
        content = gzip.compress(content, mtime=0)
        content = content[: len(content) - draw(st.integers(0, 12))]
    return form, content


@hypothesis.settings(max_examples=effort.examples(100))
@hypothesis.given(damaged(), st.integers(1, 16))
def test_a_damaged_file_is_read_by_the_rules_or_refused_by_name(
    case: tuple[str, bytes], per_node: int
) -> None:
    form, content = case
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace"
        path.write_bytes(content)
        try:
            trace = traces.read(f"{form}:{path}", gpus_per_node=per_node)
        except traces.TraceError as error:
            said = str(error)
            trace = None
    if trace is None:
        assert str(path) in said
        return
    assert trace.works
    assert trace.rows == len(trace.works) + sum(count for _, count in trace.dropped)
    assert len({work.key for work in trace.works}) == len(trace.works)
    assert list(trace.works) == sorted(trace.works, key=lambda work: (work.submit, work.row))
    for work in trace.works:
        check(work)


def check(work: workload.Work) -> None:
    assert work.key.isprintable()
    assert work.key
    assert work.submit >= workload.EPOCH
    assert work.duration > 0
    assert work.value >= 1
    assert work.requested is None or work.requested > 0
    assert not (work.undated and work.deadline is not None)
    assert sum(group.count * dict(group.requests).get(workload.GPU, 0) for group in work.pods) == work.gpus
    for group in work.pods:
        assert group.count >= 1
        assert dict(group.requests)["pods"] == 1
