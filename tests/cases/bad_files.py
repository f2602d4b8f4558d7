"""Files that people and machines break, and what `lstqueue evaluate` must say of them.

Of each: the option that names it, its name, its bytes, and words of the refusal. Whatever is not here but of
the same kind must not be a traceback either.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

DEEP, NESTED = 100_000, 500
"""Lists in lists, more than a parser follows: of JSON, and of YAML, which is slow."""


def cluster(**fields: Any) -> bytes:
    """Nodes as kubectl writes them, with one field otherwise."""
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}, **fields}
    return json.dumps({"items": [node]}).encode()


def queues(**fields: Any) -> bytes:
    return json.dumps({"queues": [{"name": "a", "gpus": 8, **fields}]}).encode()


NODES: list[tuple[str, bytes, str]] = [
    ("n.csv", "name,gpus\na,²\n".encode(), "line 2: gpus is '\\xb2'; write a whole number, 0 to 1024"),
    ("n.csv", "name,gpus\na,٣\n".encode(), "write a whole number"),
    ("n.csv", f"name,gpus\na,{'9' * 5000}\n".encode(), "gpus is very long; write a whole number"),
    ("n.csv", b"name,gpus,cpu_milli\na,8,1e9\n", "line 2: cpu_milli is '1e9'; write a whole number"),
    ("n.csv", gzip.compress(b"name,gpus\n" + b"a,8\n" * 999, mtime=0)[:40], "the gzip data end early"),
    ("n.csv", b"\x1f\x8bhello world", "the gzip data are damaged"),
    ("n.csv", b"", "is empty; its first line must name the columns"),
    ("n.json", b"", "line 1: is no JSON"),
    ("n.yaml", b"", "has no list of nodes"),
    ("n.json", b"[" * DEEP, "is JSON nested too deeply to be read"),
    ("n.yaml", b"[" * NESTED, "is YAML nested too deeply to be read"),
    ("n.json", b'[{"name": "a", "gpus": NaN}]', "node 1: gpus is nan; write a whole number"),
    ("n.json", b'[{"name": "a", "gpus": 1e999}]', "node 1: gpus is inf; write a whole number"),
    ("n.json", b'[{"name": "a", "gpus": [8]}]', "node 1: gpus is a list; write a whole number"),
    ("n.json", b'[{"name": "a", "gpus": true}]', "node 1: gpus is True; write a whole number"),
    ("n.json", b'[{"name": ["a"], "gpus": 8}]', "node 1: name is a list; write a name"),
    (
        "n.json",
        b'[{"name": "\\ud800", "gpus": 8}]',
        "name is no name: '\\ud800' has control characters",
    ),
    ("n.json", b"[[1]]", "node 1: is no object"),
    ("n.json", b'{"items": {"a": 1}}', "has no list of nodes"),
    (
        "n.json",
        cluster(metadata=["a"]),
        "metadata.name has a list for metadata; write it as kubectl does",
    ),
    ("n.json", cluster(metadata="a"), "node 1: metadata.name has 'a' for metadata"),
    ("n.json", cluster(metadata={}), "node 1: metadata.name is None; write a name"),
    ("n.json", cluster(status=[1]), "node 1: status.allocatable has a list for status"),
    ("n.json", cluster(status={"allocatable": [["nvidia.com/gpu", "8"]]}), "has a list for allocatable"),
    ("n.json", cluster(status={"allocatable": 3}), "has 3 for allocatable"),
    (
        "n.json",
        cluster(status={"allocatable": {"nvidia.com/gpu": ["8"]}}),
        "['8'] is not a quantity",
    ),
    ("n.json", cluster(status={"allocatable": {"nvidia.com/gpu": "9999"}}), "has 9999 GPUs; a node has 1024"),
    ("n.yaml", b"- {name: 2024-13-45, gpus: 8}\n", "has a value that is none (month must be in 1..12)"),
    ("n.yaml", b"-\tname: a\n", "line 1: is no YAML"),
    ("n.yaml", b"- {name: \xe9, gpus: 8}\n", "line 1: is not UTF-8; convert the file"),
    ("n.yaml", "- {name: a, gpus: 8}\n".encode("utf-16"), "is not UTF-8; convert the file"),
]
QUEUES: list[tuple[str, bytes, str]] = [
    ("q.yaml", "queues: [{name: a, gpus: ²}]".encode(), "queues[0].gpus is '\\xb2'; write a whole number"),
    ("q.yaml", b"[" * NESTED, "is YAML nested too deeply"),
    ("q.json", b"[" * DEEP, "is JSON nested too deeply"),
    ("q.yaml", b"", "queues is missing"),
    ("q.yaml", b"queues: {a: {gpus: 8}}", "queues is missing; list at least one queue"),
    ("q.yaml", b"queues: [{name: a, gpus: .nan}]", "queues[0].gpus is nan"),
    ("q.yaml", b"queues: [{name: a, gpus: 99999999999999999999}]", "queues[0].gpus is a very large number"),
    ("q.yaml", f"queues: [{{name: a, gpus: {'9' * 5000}}}]".encode(), "has a value that is none"),
    ("q.yaml", b"queues: [{name: 2024-13-45, gpus: 8}]", "has a value that is none"),
    ("q.yaml", b"queues: [{[1]: a}]", "line 1: is no YAML (found unhashable key)"),
    ("q.yaml", b"queues: &a [*a]", "queues[0]: give name, gpus"),
    ("q.json", queues(name="\ud800"), "queues[0].name is no name"),
    ("q.json", queues(name="a\nb"), "queues[0].name is no name: 'a\\nb' has control characters"),
    ("q.json", queues(name=3), "queues[0].name is 3; write a name in quotes"),
    ("q.json", queues(users=[1]), "queues[0].users is a list; list names"),
    ("q.json", queues(windows=[[1]]), "queues[0].windows[0]: this list is not a mapping of fields"),
    (
        "q.yaml",
        b"cohort: 0\nqueues: [{name: a, gpus: 8}]",
        "cohort is 0; write a name in quotes, or leave",
    ),
    ("q.yaml", b"1: 2\nqueues: [{name: a, gpus: 8}]", "1 means nothing; known are cohort, queues"),
    ("q.yaml", gzip.compress(b"queues: []", mtime=0)[:15], "the gzip data end early"),
]
FINE: list[tuple[str, str, bytes]] = [
    ("--inventory", "n.json", b'\xef\xbb\xbf[{"name": "a", "gpus": 8}]'),
    ("--inventory", "n.yaml", b"- {name: a, gpus: 8}\r\n- {name: b, gpus: 8}\r\n"),
    ("--inventory", "n.json", gzip.compress(b'[{"name": "a", "gpus": "8"}]', mtime=0)),
    ("--inventory", "n.yaml", "- {name: 学-ü, gpus: 8}\n".encode()),
    ("--queues", "q.yaml", "\ufeffqueues: [{name: 学-ü, gpus: 8}]\r\n".encode()),
    ("--queues", "q.yaml", gzip.compress(b"queues: [{name: a, gpus: 8}]", mtime=0)),
]
