"""Small trace files, made by hand; no row is taken from a published trace."""

from __future__ import annotations

import gzip
import os
import pathlib

import pytest

from lstqueue.evaluate import traces, workload

EPOCH = workload.EPOCH
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000

ELASTICFLOW = """\
job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration
a,100,5,toy,400,1,1,200
b,50,5,toy,90,1,20,3600
c,50,5,toy,9000,1,8,1.5
"""
CHRONUS = """\
job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type
0,ann,4,30,9,toy,20,1,40,10,0,strict
1,bob,8,10,9,toy,60,1,120,1,1,best
2,ann,0,11,9,toy,60,1,90,10,0,strict
3,ann,1,12,9,toy,60,1,70-90-140,9-5-2,0,soft
"""
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-11 00:00:05,60.0,1,60.0,v1
2017-10-10 12:00:00,0.0,8,0.0,v1
2017-10-10 12:00:00,7.25,16,116.0,v2
"""
OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,1000,64,1,1000,,LS,Succeeded,10,70,20
p1,1000,64,1,460,,BE,Failed,11,50,11
p2,1000,64,0,0,,LS,Running,12,80,12
p3,1000,64,8,1000,T|U,LS,Pending,13,80,
p4,1000,64,2,1000,,LS,Running,14,100,14
p5,1000,64,2,1000,,LS,Running,15,90,15
"""
SWF = """\
; Version: 2.2
;
 1 10 5 100 16 -1 -1 16 600 -1 1 7 1 -1 3 -1 -1 -1
 2 20 5  -1 16 -1 -1 16 600 -1 5 7 1 -1 3 -1 -1 -1
 3 30 5  50  0 -1 -1 24  -1 -1 1 -1 1 -1 3 -1 -1 -1
 4 40 5  50 -1 -1 -1 24 600 -1 5 8 1 -1 3 -1 -1 -1
 5 50 5  50  8 -1 -1  8 600 -1 2 8 1 -1 3 -1 -1 -1
 6 60 5   0  8 -1 -1  8 600 -1 0 8 1 -1 3 -1 -1 -1
 7 70 5  70.5 8 -1 -1 8 600 -1 0 8 1 -1 3 -1 -1 -1
"""


def read(folder: pathlib.Path, form: str, text: str | bytes, **more: int) -> workload.Workload:
    """Read `text` as a trace of the format."""
    path = folder / "trace.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return traces.read(f"{form}:{path}", **more)


def refusal(folder: pathlib.Path, form: str, text: str | bytes) -> str:
    """What is said of a trace that cannot be read, without the folder."""
    with pytest.raises(traces.TraceError) as caught:
        read(folder, form, text)
    return str(caught.value).replace(f"{folder}{os.sep}", "")


def packed(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


def real(name: str) -> str:
    """The path of a published trace below the folder LSTQUEUE_DATA; skips the test where there is none."""
    folder = os.environ.get("LSTQUEUE_DATA")
    if not folder:
        pytest.skip("LSTQUEUE_DATA names no folder of published traces")
    path = pathlib.Path(folder) / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return str(path)


def work(key: str, *, submit: int = 0, duration: int = HOUR, gpus: int = 8, **more: object) -> workload.Work:
    """A job; times in ms, `submit` and `due` from the epoch of traces."""
    due = more.pop("due", None)
    return workload.Work(
        key=key,
        user=str(more.pop("user", "ann")),
        submit=EPOCH + submit,
        duration=duration,
        pods=workload.gang(gpus, 8),
        gpus=gpus,
        deadline=None if due is None else EPOCH + due,
        **more,
    )
