"""The gRPC client: one connection to one sidecar, JSON messages, a token on each call.

Coroutines here run in the loop of :class:`omni_perf.looper.Looper`. grpclib is imported
with this module, so this module is imported when a first sidecar is started.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Status
from grpclib.encoding.base import CodecBase
from grpclib.exceptions import GRPCError, StreamTerminatedError
from h2.exceptions import ProtocolError

from omni_perf import contract, silence
from omni_perf.launcher import Endpoint, limits_too_low

RENEW_AFTER = 1000
"""Calls after which the connection is made anew: h2 keeps a record of 65,536 streams that
have ended, which is 13 MB of the kernel's memory in a long session."""


class SidecarError(Exception):
    """A call failed; the text is a sentence for the user."""


class SidecarGoneError(SidecarError):
    """There is no sidecar at the other end any more."""


class SidecarSlowError(SidecarError):
    """No answer came in time."""


class JsonCodec(CodecBase):
    """Messages are plain dictionaries, with the fields that the classes of contract have."""

    __content_subtype__ = "json"  # pyright: ignore

    def encode(self, message: Any, message_type: Any) -> bytes:
        # A name may hold lone surrogates, which no JSON reader has to accept.
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    def decode(self, data: bytes, message_type: Any) -> dict[str, Any]:
        answer: object = json.loads(data)
        if not isinstance(answer, dict):
            raise ValueError("not a JSON object")
        return cast("dict[str, Any]", answer)


class Client:
    """A connection to the sidecar at an endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        silence.install()  # the loggers of what this module imports
        self.endpoint = endpoint
        self.gone_at_ns = 0
        """When the sidecar was seen to end (CLOCK_MONOTONIC), 0 while it lives."""
        self._channel = self._connection()
        self._calls = 0
        self._in_flight = 0
        self._metadata = {"authorization": "Bearer " + endpoint.token}

    def _connection(self) -> Channel:
        return Channel(path=self.endpoint.socket, codec=JsonCodec())

    def process_watch(self) -> tuple[int, Callable[[], None]] | None:
        """Return a pidfd of the sidecar and what to do when it fires; None without pidfds."""
        try:
            descriptor = os.pidfd_open(self.endpoint.pid)
        except (AttributeError, OSError):
            return None
        return descriptor, self._ended

    async def call(self, method: str, request: Mapping[str, Any], timeout: float) -> Any:
        """Call a method of the contract; raise a SidecarError unless it answers."""
        if self.gone_at_ns:
            raise SidecarGoneError("The sidecar ended.")
        if self._calls >= RENEW_AFTER and not self._in_flight:
            self._channel.close()
            self._channel, self._calls = self._connection(), 0
        self._calls += 1
        self._in_flight += 1
        stub: UnaryUnaryMethod[Any, Any] = UnaryUnaryMethod(self._channel, contract.SERVICE + method, dict, dict)
        try:
            return await asyncio.wait_for(stub(request, metadata=self._metadata), timeout)
        except GRPCError as error:
            if error.status is Status.UNAVAILABLE:
                self._ended()
                raise SidecarGoneError("The sidecar is shutting down.") from error
            said = error.message or f"The sidecar refused {method} ({error.status.name})."
            raise SidecarError(said) from error
        except TimeoutError as error:
            raise SidecarSlowError(f"The sidecar did not answer within {timeout:g} s.") from error
        except (OSError, StreamTerminatedError, ProtocolError) as error:
            self._ended()
            raise SidecarGoneError("The connection to the sidecar was lost." + limits_too_low()) from error
        except ValueError as error:
            raise SidecarError(f"The sidecar's answer to {method} could not be read.") from error
        finally:
            self._in_flight -= 1

    def close(self) -> None:
        """Drop the connection. In the loop only."""
        self._channel.close()

    def _ended(self) -> None:
        if not self.gone_at_ns:
            self.gone_at_ns = time.monotonic_ns()
