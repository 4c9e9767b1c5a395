"""The messages of sidecar/api/omni_perf.proto, as the JSON codec carries them.

protojson's rules: lowerCamelCase, 64-bit integers as strings, bytes as base64, fields
with their zero value left out. A test compares this file with the .proto.
"""

from __future__ import annotations

from typing import TypedDict

API = 1
"""Number of the protocol spoken here; the sidecar refuses one that it does not speak."""

SERVICE = "/omni_perf.v1.OmniPerf/"

Int64 = str

DEFAULT_INTERVAL_S = 0.001
DEFAULT_KERNEL_WAIT_S = 30e-6
DEFAULT_SYSTEM_INTERVAL_S = 0.1
LONGEST_INTERVAL_S = 3600
"""Of sidecar/measure/timeline/intervals.go, which owns them and the shortest; a test compares them."""


class Installation(TypedDict, total=False):
    prefixes: list[str]
    standard: list[str]
    extension: str


class HelloRequest(TypedDict, total=False):
    version: str
    api: int
    pid: int
    pythonVersion: str
    interpreter: str
    implementation: str
    freeThreaded: bool
    connectionFile: str
    installation: Installation
    notebook: str


class HelloResponse(TypedDict, total=False):
    version: str
    api: int
    pid: int
    outside: str
    reason: str
    refusal: str
    notes: list[str]


class CellSource(TypedDict, total=False):
    file: str
    executionCount: int
    text: str
    lines: list[int]
    nested: bool


class BeginRequest(TypedDict, total=False):
    cellId: str
    executionCount: int
    text: str
    file: str
    sources: list[CellSource]
    name: str
    intervalNs: Int64
    systemIntervalNs: Int64
    children: str
    threadId: int
    parentMsgId: str
    automatic: bool
    thresholdNs: Int64
    startedNs: Int64
    coroutine: Int64
    ownThreads: list[int]
    residentBytes: Int64


class BeginResponse(TypedDict, total=False):
    outside: str
    reason: str


class Mark(TypedDict, total=False):
    kind: str
    name: str
    startNs: Int64
    endNs: Int64
    samples: Int64
    tokens: Int64
    epoch: int
    optimizerNs: Int64


class Loaded(TypedDict, total=False):
    file: str
    modifiedNs: Int64


class EndRequest(TypedDict, total=False):
    cellId: str
    endedNs: Int64
    outcome: str
    marks: list[Mark]
    sources: list[CellSource]
    quiet: bool
    form: str
    theme: str
    beganNs: Int64
    loaded: list[Loaded]
    torch: Torch
    kernelWaitNs: Int64
    outOfMemory: list[OutOfMemory]
    torchMemory: list[TorchMemory]
    allocations: Allocations
    residentBytes: Int64


class Allocations(TypedDict, total=False):
    tool: str
    allocations: Int64
    peakBytes: Int64
    keptBytes: Int64
    readingNs: Int64
    stacks: list[Allocated]


class Allocated(TypedDict, total=False):
    stack: list[Place]
    peakBytes: Int64
    peakAllocations: Int64
    keptBytes: Int64


class TorchMemory(TypedDict, total=False):
    device: int
    before: TorchFigures
    after: TorchFigures


class TorchFigures(TypedDict, total=False):
    allocatedBytes: Int64
    reservedBytes: Int64
    peakBytes: Int64


class OutOfMemory(TypedDict, total=False):
    atNs: Int64
    device: int
    requestedBytes: Int64
    usableBytes: Int64
    freeBytes: Int64
    snapshot: str
    stack: list[Place]
    held: list[Held]
    all: bool


class Place(TypedDict, total=False):
    file: str
    line: int
    function: str


class Held(TypedDict, total=False):
    name: str
    kind: str
    place: Place
    bytes: Int64
    tensors: int
    shape: str


class Torch(TypedDict, total=False):
    traces: list[str]
    byShape: bool
    recorded: list[Recorded]
    folder: str
    node: int


class Recorded(TypedDict, total=False):
    beganNs: Int64
    endedNs: Int64
    cycle: str


class Bundle(TypedDict, total=False):
    dataJson: str
    metadataJson: str
    transientJson: str


class EndResponse(TypedDict, total=False):
    reportId: str
    bundle: Bundle
    headline: str
    lines: list[str]
    reportGzip: str
    written: list[str]


class ReportRequest(TypedDict, total=False):
    reportId: str
    format: str
    reportGzip: str


class ReportResponse(TypedDict, total=False):
    content: str
    mediaType: str


class ListRequest(TypedDict, total=False):
    pass


class Entry(TypedDict, total=False):
    reportId: str
    executionCount: int
    name: str
    durationS: float
    outcome: str
    headline: str
    firstLine: str
    startedAt: str


class ListResponse(TypedDict, total=False):
    entries: list[Entry]


class Frame(TypedDict, total=False):
    id: int
    function: str
    file: str
    line: int
    firstLine: int
    suspended: bool
    elided: int


class Stack(TypedDict, total=False):
    id: int
    frames: list[int]


class Sample(TypedDict, total=False):
    atNs: Int64
    threadId: int
    stack: int


class Thread(TypedDict, total=False):
    threadId: int
    name: str
    main: bool


class PushRequest(TypedDict, total=False):
    cellId: str
    frames: list[Frame]
    stacks: list[Stack]
    samples: list[Sample]
    threads: list[Thread]
    cpuNs: Int64


class PushResponse(TypedDict, total=False):
    pass


class StatusRequest(TypedDict, total=False):
    pass


class StatusResponse(TypedDict, total=False):
    version: str
    pid: int
    uptimeS: float
    rssBytes: Int64
    recording: list[str]
    reports: int
    reportBytes: Int64
    outside: str
    reason: str
    gpus: list[str]
    gpuReason: str
    log: str


class DoctorRequest(TypedDict, total=False):
    pass


class Check(TypedDict, total=False):
    name: str
    ok: bool
    sentence: str
    required: bool


class DoctorResponse(TypedDict, total=False):
    checks: list[Check]


class LiveRequest(TypedDict, total=False):
    cellId: str
    steps: Int64
    totalSteps: Int64
    lastStepNs: Int64


class LiveResponse(TypedDict, total=False):
    bundle: Bundle
    pauseNs: Int64


class Compared(TypedDict, total=False):
    reportId: str
    reportGzip: str
    name: str


class CompareRequest(TypedDict, total=False):
    before: list[Compared]
    after: list[Compared]
    form: str
    theme: str


class CompareResponse(TypedDict, total=False):
    bundle: Bundle
    headline: str


class OverviewRequest(TypedDict, total=False):
    form: str
    name: str
    file: str


class OverviewResponse(TypedDict, total=False):
    bundle: Bundle
    written: str
