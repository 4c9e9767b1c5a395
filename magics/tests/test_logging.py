"""What we run in the kernel leaves no line in the user's logs, and no secret anywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import alive, wait_until
from kernels import Kernel, folders_of

LISTEN = """
import asyncio, logging
class Listener(logging.Handler):
    def __init__(self):
        super().__init__(logging.NOTSET)
        self.records = []
    def emit(self, record):
        self.records.append(record)
listener = Listener()
logging.getLogger().addHandler(listener)
logging.getLogger().setLevel(logging.NOTSET)
"""

OURS = """
[f"{r.threadName} {r.name}: {r.getMessage()}" for r in listener.records
 if r.threadName.startswith("omni_perf") or r.name.split(".")[0] in ("grpclib", "h2", "hpack", "hyperframe")
 or "_Selector" in r.getMessage()]
"""

SECRETS = """
import omni_perf.extension as extension
links = [loaded.session.link for loaded in extension._loaded.values()]
tokens = [link.client.endpoint.token for link in links if link is not None]
assert tokens
[r.getMessage() for r in listener.records if any(token in repr(r.__dict__) + r.getMessage() for token in tokens)]
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel whose user logs everything, whose sidecar does so, too."""
    environment = {
        "OMNI_PERF_LOG": str(tmp_path / "log"),
        "GODEBUG": "http2debug=2",
        "GRPC_GO_LOG_SEVERITY_LEVEL": "info",
        "GRPC_GO_LOG_VERBOSITY_LEVEL": "99",
    }
    with Kernel(environment) as kernel:
        kernel.run(LISTEN)
        yield kernel


def test_nothing_of_ours_is_logged_and_no_secret(kernel: Kernel, tmp_path: Path) -> None:
    assert len(kernel.run("%%omni_perf\nsum(range(10**6))").charts()) == 1
    for line in ("on -t 0", "list", "status", "doctor", f"save {tmp_path}/r", "off"):
        kernel.run(f"%omni_perf {line}")
        kernel.run("sum(range(10**6))")
    first = kernel.sidecar()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not alive(first), "the sidecar's end")
    assert len(kernel.run("%%omni_perf\nimport asyncio\nawait asyncio.sleep(0.01)").charts()) == 1
    assert kernel.run(OURS).result == "[]"
    assert kernel.run(SECRETS).result == "[]"

    token = kernel.run("tokens[0]").result
    assert token is not None
    logs = [tmp_path / "log", *(folder / "log" for folder in folders_of(kernel.sidecar()))]
    for log in filter(Path.exists, logs):
        text = log.read_text()
        assert "call=Begin" in text
        assert token.strip("'") not in text
        assert "Bearer" not in text


def test_the_users_own_use_of_the_same_libraries_is_logged(kernel: Kernel) -> None:
    kernel.run("%%omni_perf\n1")
    kernel.run(
        "logging.getLogger('hpack.hpack').debug('the user compresses')\nloop = asyncio.new_event_loop(); loop.close()"
    )
    seen = kernel.run("{r.name for r in listener.records} & {'hpack.hpack', 'asyncio'}").result
    assert seen is not None
    assert "hpack.hpack" in seen
    assert "asyncio" in seen


def test_unloading_leaves_the_loggers_as_they_were(kernel: Kernel) -> None:
    kernel.run("%%omni_perf\n1")
    filters = "[n for n, l in logging.root.manager.loggerDict.items() if getattr(l, 'filters', [])]"
    assert kernel.run(filters).result != "[]"
    kernel.run("%unload_ext omni_perf")
    assert kernel.run(filters).result == "[]"


def test_an_endpoint_does_not_show_its_token() -> None:
    from omni_perf.launcher import Endpoint

    assert "geheim" not in repr(Endpoint("/s", 1, "0", "geheim"))
