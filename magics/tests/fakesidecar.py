"""A sidecar in Python that speaks the contract and misbehaves on demand.

Run as a program (see ``install``) it takes the start message of the real one, detaches,
and answers. FAKE_SIDECAR in its environment is a JSON object:

    answers   {method: response} merged over the usual ones
    delay_s   {method: seconds to wait before answering}
    die_on    method at which it ends without an answer
    start     "silent": ends without a line; "error": refuses; "hang": never answers
    journal   file to which each request is appended as a line of JSON

Its sockets are in the folder FAKE_SIDECAR_SOCKETS, which outlives it.

``export`` writes DRAWN, as the real one's ``export - --json --name NAME`` writes a drawing.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

USUAL: dict[str, dict[str, Any]] = {
    "Hello": {"version": "0.1.0", "api": 1, "outside": "ok"},
    "Begin": {"outside": "ok"},
    "End": {
        "reportId": "r1",
        "headline": "1.0 s, mostly waiting",
        "bundle": {
            "dataJson": json.dumps({"text/html": "<b>CHART</b>", "text/plain": "CHART"}),
            "metadataJson": json.dumps({"text/html": {"isolated": False}}),
            "transientJson": "{}",
        },
        "reportGzip": base64.b64encode(gzip.compress(b'{"document": "omni_perf.report", "version": 2}')).decode(),
    },
    "Report": {
        "content": base64.b64encode(
            b'{"data": {"text/html": "<b>DRAWN</b>"}, "metadata": {}, "transient": {}}'
        ).decode(),
        "mediaType": "application/json",
    },
    "List": {"entries": [{"reportId": "r1", "executionCount": 3, "durationS": 1.5}]},
    "Push": {},
    "Status": {"version": "0.1.0", "pid": 1, "rssBytes": "12000000", "outside": "ok"},
    "Doctor": {"checks": [{"name": "stacks", "ok": True, "sentence": "Readable.", "required": True}]},
}


def install(folder: Path) -> str:
    """Write an executable that runs this file with this interpreter; return its path."""
    program = folder / "fake-omni-perf"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def main() -> None:
    """Answer the start message and serve from a process of its own."""
    if sys.argv[1] == "export":
        _export(sys.argv[sys.argv.index("--name") + 1])
        return
    behaviour: dict[str, Any] = json.loads(os.environ.get("FAKE_SIDECAR", "{}"))
    how = behaviour.get("start", "")
    start: dict[str, Any] = json.loads(sys.stdin.readline())
    if how == "silent":
        sys.exit(3)
    if how == "error":
        print(json.dumps({"error": "The sidecar could not make its folder."}))
        sys.exit(1)
    if os.fork():
        os._exit(0)
    os.setsid()
    if how == "hang":
        asyncio.run(asyncio.sleep(20))
        sys.exit(0)
    asyncio.run(_serve(behaviour, start))


def _export(name: str) -> None:
    """Take a report and write what it is called."""
    report = gzip.decompress(sys.stdin.buffer.read())
    result: dict[str, Any] = {"written": [], "saved": []}
    for path in [name] if "." in os.path.basename(name) else [name + ".svg", name + ".html"]:
        try:
            Path(path).write_bytes(report if path.endswith(".json") else b"DRAWN")
            result["written"].append(path)
        except OSError as error:
            result["error"] = f"Cannot write {path}: {error.strerror}."
    print(json.dumps(result), file=sys.stderr)


async def _serve(behaviour: dict[str, Any], start: dict[str, Any]) -> None:
    from grpclib.server import Server

    service = _Service(behaviour, start["token"])
    socket = os.path.join(os.environ["FAKE_SIDECAR_SOCKETS"], str(os.getpid()))
    server = Server([service], codec=service.codec)
    await server.start(path=socket)
    print(json.dumps({"socket": socket, "pid": os.getpid(), "version": "0.1.0", "api": 1}))
    sys.stdout.flush()
    os.close(1)
    while _alive(start["kernel_pid"]):
        await asyncio.sleep(0.1)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


class _Service:
    def __init__(self, behaviour: dict[str, Any], token: str) -> None:
        from omni_perf.client import JsonCodec

        self.codec = JsonCodec()
        self._behaviour = behaviour
        self._token = token

    def __mapping__(self) -> dict[str, Any]:
        from grpclib.const import Cardinality, Handler

        def handler(method: str) -> Any:
            async def answer(stream: Any) -> None:
                await self._answer(method, stream)

            return Handler(answer, Cardinality.UNARY_UNARY, dict, dict)

        return {f"/omni_perf.v1.OmniPerf/{method}": handler(method) for method in USUAL}

    async def _answer(self, method: str, stream: Any) -> None:
        from grpclib.const import Status
        from grpclib.exceptions import GRPCError

        if stream.metadata.get("authorization") != "Bearer " + self._token:
            raise GRPCError(Status.UNAUTHENTICATED, "The token is missing or wrong.")
        request: dict[str, Any] = await stream.recv_message()
        journal = self._behaviour.get("journal")
        if journal:
            with open(journal, "a", encoding="utf-8") as file:
                file.write(json.dumps({"method": method, "pid": os.getpid(), **request}) + "\n")
        if self._behaviour.get("die_on") == method:
            os._exit(9)
        await asyncio.sleep(self._behaviour.get("delay_s", {}).get(method, 0))
        answer = {**USUAL[method], **self._behaviour.get("answers", {}).get(method, {})}
        if request.get("quiet"):
            answer.pop("bundle", None)
        await stream.send_message(answer)


if __name__ == "__main__":
    main()
