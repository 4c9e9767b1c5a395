"""What the thread of a cell says to the sidecar itself."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from omni_perf import announce
from omni_perf.launcher import Endpoint


@pytest.fixture
def listening() -> Iterator[tuple[Endpoint, socket.socket]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sidecar:
        sidecar.bind(str(Path(folder) / announce.SOCKET))
        sidecar.setblocking(False)
        yield Endpoint(socket=str(Path(folder) / "s"), pid=1, version="1", token="secret", started=1), sidecar


def test_begin_and_end_are_datagrams(listening: tuple[Endpoint, socket.socket]) -> None:
    endpoint, sidecar = listening
    announce.begins(endpoint, {"cellId": "7", "text": "x = '\ud800'"}, 0.005)
    announce.is_over(endpoint, "7")
    said = [json.loads(sidecar.recv(announce.LIMIT)) for _ in range(2)]
    assert said == [
        {"token": "secret", "begin": {"cellId": "7", "text": "x = '\ud800'"}, "delay_ns": 5_000_000},
        {"token": "secret", "over": "7"},
    ]


def test_what_is_too_long_is_not_announced(listening: tuple[Endpoint, socket.socket]) -> None:
    endpoint, sidecar = listening
    announce.begins(endpoint, {"text": "x" * announce.LIMIT}, 0.005)
    with pytest.raises(BlockingIOError):
        sidecar.recv(1)


def test_nobody_who_reads_is_no_error(listening: tuple[Endpoint, socket.socket]) -> None:
    endpoint, sidecar = listening
    for _ in range(2000):  # more than the socket holds
        announce.is_over(endpoint, "7")
    assert sidecar.recv(announce.LIMIT)
    (Path(endpoint.socket).parent / announce.SOCKET).unlink()
    announce.is_over(endpoint, "7")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_nothing_is_sent_to_another_user(listening: tuple[Endpoint, socket.socket]) -> None:
    endpoint, sidecar = listening
    os.chown(Path(endpoint.socket).parent, 12345, -1)
    announce.is_over(endpoint, "7")
    with pytest.raises(BlockingIOError):
        sidecar.recv(1)
