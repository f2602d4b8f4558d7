"""Files that are no trace: what is wrong, where, and what to do."""

from __future__ import annotations

import pathlib
import zlib

import pytest

from cases import trace_files as files
from lstqueue.evaluate import traces

HEAD = "job_id,submission_time,deadline,num_gpu,duration\n"
ROW = "a,100,400,1,200\n"


@pytest.mark.parametrize(
    "text",
    [
        files.packed(HEAD + ROW),
        b"\xef\xbb\xbf" + (HEAD + ROW).encode(),
        files.packed("\ufeff" + HEAD + ROW),
        (HEAD + ROW).replace("\n", "\r\n").encode(),
        (HEAD + ROW).rstrip().encode(),
        ("\n\n" + HEAD + "\n" + ROW + "\n\n").encode(),
        b" duration , job_id,num_gpu,submission_time,deadline,other\n 2e2, a ,1.0,100,400,x\n",
        b'job_id,submission_time,deadline,num_gpu,duration\n"a","1_00",400,1,200\n'.replace(
            b"1_00", b"100.000"
        ),
    ],
)
def test_how_a_table_is_written_makes_no_difference(tmp_path: pathlib.Path, text: bytes) -> None:
    [work] = files.read(tmp_path, "elasticflow", text).works

    assert (work.key, work.submit, work.duration, work.gpus) == ("a", files.EPOCH + 100_000, 200_000, 1)


def test_names_may_be_in_any_script(tmp_path: pathlib.Path) -> None:
    [work] = files.read(tmp_path, "elasticflow", HEAD + "学習-ü,1,2,1,1\n").works

    assert work.key == "学習-ü"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "trace.csv: is empty; its first line must name the columns job_id"),
        ("\n\n\n", "trace.csv: is empty"),
        (HEAD, "no row of 0 is a usable job (it has none)"),
        (HEAD + "a,1,2,1,0\nb,1,2,1,\n", "(run time unknown 1, run time zero or negative 1)"),
        (
            "job_id,deadline,num_gpu\nx,1,1\n",
            "line 1: has no column submission_time, duration (it has: job_id",
        ),
        ("job_id," + HEAD + "a,b,1,2,3,4\n", "line 1: names the column 'job_id' twice"),
        (HEAD + ROW + "b,100,400\n", "line 3: it has 3 cells and the header 5"),
        (HEAD + "b,100,400,1,200,9\n", "line 2: it has 6 cells"),
        (
            HEAD + "a,soon,400,1,200\n",
            "line 2, column 'submission_time': 'soon' is no number; leave the cell empty",
        ),
        (HEAD + "a,inf,400,1,200\n", "column 'submission_time': 'inf' is no number"),
        (HEAD + "a,1_000,400,1,200\n", "'1_000' is no number"),
        (HEAD + "a,１２,400,1,200\n", "is no number"),
        (
            HEAD + "a,1,400,1,1e300\n",
            "column 'duration': '1e300' is over a hundred years; it is in units of 1000 ms",
        ),
        (HEAD + "a,1,400,1,1e999999999\n", "over a hundred years"),
        (HEAD + f"a,1,400,1,{'9' * 5000}\n", "is no number"),
        (HEAD + "a,1,400,1,99999999999\n", "over a hundred years"),
        (HEAD + "a,1,400,1e999999999,5\n", "is beyond 1000000"),
        (HEAD + "a,1,400,1,1e-999999999\n", "run time zero or negative 1"),
        (HEAD + "a,1,400,2000001,5\n", "column 'num_gpu': '2000001' is beyond 1000000"),
        (HEAD + "a,1,400,1.5,5\n", "column 'num_gpu': '1.5' is not whole"),
        (HEAD + "\x1b[2Ja,1,400,1,5\n", "column 'job_id': '\\x1b[2Ja' has control characters"),
        (HEAD + "a" * 201 + ",1,400,1,5\n", "is longer than 200 characters"),
        (HEAD + '"a,1,400,1,5\n', "is no CSV (unexpected end of data)"),
        (HEAD + '"a"b,1,400,1,5\n', "line 2: is no CSV"),
        (HEAD + '"' + "a\n" * 200_000, "is no CSV (field larger than field limit"),
        (HEAD.encode() + b"\xe9,1,400,1,5\n", "line 2: is not UTF-8"),
        ((HEAD + ROW).encode("utf-16"), "line 1: is not UTF-8"),
        ((HEAD + ROW).encode("utf-16-le"), "line 1: has a NUL byte"),
        (HEAD.replace("\n", "\r") + ROW, "is no CSV"),
        (HEAD + "x" * (1 << 20) + "\n", "line 2: longer than 1,048,576 bytes"),
        (files.packed(HEAD + ROW * 999)[:-30], "the gzip data end early; fetch the file again"),
        (files.packed(HEAD + ROW)[:5], "the gzip data end early"),
        (files.packed(HEAD + ROW) + b"rest", "the gzip data are damaged"),
        (files.packed(HEAD + ROW)[:-8] + b"\0" * 8, "the gzip data are damaged"),
        (files.packed(HEAD)[:10] + b"\xff" * 30, "the gzip data are damaged"),
        (zlib.compress(HEAD.encode()), "is not UTF-8"),
    ],
)
def test_a_broken_table_is_refused_at_the_place(tmp_path: pathlib.Path, text: str | bytes, says: str) -> None:
    assert says in files.refusal(tmp_path, "elasticflow", text)


@pytest.mark.parametrize(
    ("form", "text", "says"),
    [
        (
            "chronus",
            files.CHRONUS.replace("soft", "hard"),
            "line 5, column 'job_type': 'hard' is no type of job",
        ),
        ("chronus", files.CHRONUS.replace("70-90", "x-90"), "column 'expect_time_list': 'x' is no number"),
        ("chronus", files.ELASTICFLOW, "or name another format"),
        (
            "philly",
            files.PHILLY.replace("10-11 00", "10-41 00"),
            "line 2, column 'timestamp': '2017-10-41 00:00:05'",
        ),
        (
            "philly",
            files.PHILLY.replace("2017-10-11 00:00:05", "1507680005"),
            "must read YYYY-MM-DD HH:MM:SS",
        ),
        ("openb", files.OPENB.replace(",14,100,14", ",14,x,14"), "line 6, column 'deletion_time'"),
        ("swf", files.ELASTICFLOW, "line 1: it has 1 fields where 18 belong; is this SWF?"),
        ("swf", files.SWF.replace("100 16", "abc 16"), "line 3, column 'run time': 'abc' is no number"),
        ("swf", "; only a comment\n", "no row of 0 is a usable job"),
    ],
)
def test_every_format_names_the_place(tmp_path: pathlib.Path, form: str, text: str, says: str) -> None:
    assert says in files.refusal(tmp_path, form, text)


BASE = '{"key": "a", "submit_ms": 0, "duration_ms": 5, "gpus": 1'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "key,submit_ms,duration_ms,gpus,deadlin_ms\na,0,1,1,5\n",
            "a column 'deadlin_ms' that means nothing here",
        ),
        ("key,submit_ms,duration_ms\na,0,1\n", "line 2, column 'gpus': is missing, and so is pods"),
        ("key,submit_ms,duration_ms,pods\na,0,1,4*8\n", "column 'pods': '4*8' must read like \"4x8+1x3\""),
        ("key,submit_ms,duration_ms,pods\na,0,1,0x8\n", "must read like"),
        ("key,submit_ms,duration_ms,gpus,pods\na,0,1,9,1x8\n", "has 8 GPUs and gpus says 9"),
        ("key,submit_ms,duration_ms,pods\na,0,1,999999x999999\n", "GPUs, beyond 1000000"),
        ("key,submit_ms,duration_ms,gpus,value\na,0,1,1,0\n", "column 'value': is 0; it must be 1 or more"),
        (BASE + "}\n" + BASE + "\n", "line 2: is no JSON object"),
        (BASE + "}\n[1]\n", "line 2: is no JSON object; write one job a line"),
        (BASE + ', "deadlin_ms": 5}', "line 1, column 'deadlin_ms': means nothing here"),
        ('{"key": "a", "submit_ms": 0, "gpus": 1}', "column 'duration_ms': is missing; write null"),
        (BASE + ', "gpus": 2}', "'gpus' is there twice"),
        (BASE + ', "user": ["x"]}', "column 'user': is [\"x\"]; it must be a number or a string"),
        (BASE + ', "value": true}', "column 'value': is true"),
        (BASE + ', "pods": []}', "column 'pods': must be a list of"),
        (BASE + ', "pods": [{"count": 1}]}', "column 'pods': must be a list of"),
        (
            BASE + ', "pods": [{"count": -1, "requests": {}}]}',
            "has '-1'; it must be an integer, 1 to 1000000",
        ),
        (BASE + ', "pods": [{"count": 1, "requests": {"cpu": 0.5}}]}', "has '0.5'; it must be an integer"),
        (BASE + ', "pods": ' + "[" * 100_000, "is no JSON object"),
        (BASE + ', "importance": 99}', "is 99; it must be -10 to 10"),
        (BASE.replace('"submit_ms": 0', '"submit_ms": 1.5') + "}", "is not whole; times are whole ms"),
        (BASE + ', "requested_ms": "2h"}', "times are whole ms, two hours are 7200000"),
        (BASE + ', "importance": ' + "9" * 5000 + "}", "is no number"),
        (BASE + ', "value": Infinity}', "column 'value'"),
    ],
)
def test_ones_own_format_takes_no_slip_for_missing_data(tmp_path: pathlib.Path, text: str, says: str) -> None:
    assert says in files.refusal(tmp_path, "lstqueue", text)


@pytest.mark.parametrize("spec", ["trace.csv", "slurm:trace.csv", "swf:", ""])
def test_a_trace_without_a_known_format_is_refused(spec: str) -> None:
    with pytest.raises(
        traces.TraceError, match="write FORMAT:PATH with one of chronus, elasticflow, lstqueue"
    ):
        traces.read(spec)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(traces.TraceError, match=r"none\.csv: cannot be read: No such file"):
        traces.read(f"swf:{tmp_path / 'none.csv'}")
    with pytest.raises(traces.TraceError, match="cannot be read: Is a directory"):
        traces.read(f"swf:{tmp_path}")
