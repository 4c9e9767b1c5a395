"""Write a snapshot as torch 2.15 does with everything on: make_full_snapshot.py FILE.

_record_memory_history(stacks="all", context="all", record_pinned_host_memory=True): the keys, their
order and their types are those that _dump_snapshot wrote on the CPU and that libtorch_python.so and
torch/cuda/memory.py name; the frames are those of symbolize_tracebacks(gather_traceback(True, True, True))
around the functions of libtorch_cuda.so that allocate. FILE that ends in .gz is compressed.
"""

import gzip
import pickle
import sys

MIB = 1 << 20
SITE = "/opt/venv/lib/python3.11/site-packages/"


def native(library, offset, name):
    return {"filename": f"{SITE}torch/lib/{library}", "line": offset, "name": name}


def python(file, line, name):
    return {"filename": file, "line": line, "name": name}


# What every recorded allocation begins with, innermost first.
UNWINDER = [
    native("libtorch_cpu.so", 108146796, "torch::unwind::unwind()"),
    native("libtorch_cpu.so", 107817241, "torch::CapturedTraceback::gather(bool, bool, bool)"),
    native("libtorch_cuda.so", 30911002, "??"),
    native(
        "libc10_cuda.so",
        171042,
        "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(unsigned long, CUstream_st*)",
    ),
    native(
        "libc10_cuda.so",
        176110,
        "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)",
    ),
    native(
        "libtorch_cpu.so",
        27100231,
        "at::TensorBase at::detail::_empty_generic<c10::ArrayRef<long> >(c10::ArrayRef<long>, c10::Allocator*, c10::DispatchKeySet, c10::ScalarType, std::optional<c10::MemoryFormat>)",
    ),
    native(
        "libtorch_cuda.so",
        16775440,
        "at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType, std::optional<c10::Device>, std::optional<c10::MemoryFormat>)",
    ),
]
INTERPRETER = [
    {"filename": "/usr/lib/libpython3.11.so.1.0", "line": 1412002, "name": "PyObject_Vectorcall"},
    {"filename": "/usr/lib/libpython3.11.so.1.0", "line": 1038786, "name": "_PyEval_EvalFrameDefault"},
]
START = [
    {"filename": "/usr/lib/libpython3.11.so.1.0", "line": 2427107, "name": "PyEval_EvalCode"},
    {"filename": "/usr/lib/libpython3.11.so.1.0", "line": 2729995, "name": "_PyRun_AnyFileObject"},
    {"filename": "/lib/x86_64-linux-gnu/libc.so.6", "line": 160516, "name": "__libc_start_main"},
    {"filename": "/usr/bin/python3.11", "line": 4224, "name": "_start"},
]
ENGINE = [
    native(
        "libtorch_cpu.so",
        98664711,
        "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor, std::allocator<at::Tensor> >&&)",
    ),
    native(
        "libtorch_cpu.so",
        98693051,
        "torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&, torch::autograd::Node*)",
    ),
    native(
        "libtorch_cpu.so",
        98699867,
        "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)",
    ),
    {"filename": "/lib/x86_64-linux-gnu/libc.so.6", "line": 561316, "name": "start_thread"},
]
model = [
    *UNWINDER,
    native("libtorch_cuda.so", 21220720, "at::native::empty_strided_cuda(c10::ArrayRef<long>, c10::ArrayRef<long>)"),
    *INTERPRETER,
    *START,
    python(f"{SITE}torch/nn/modules/module.py", 915, "_apply"),
    python("/home/me/train.py", 12, "build_model"),
    python("/home/me/train.py", 60, "<module>"),
]
forward = [
    *UNWINDER,
    native(
        "libtorch_cuda.so",
        68419936,
        "at::native::structured_addmm_out_cuda::impl(at::Tensor const&, at::Tensor const&)",
    ),
    native(
        "libtorch_cpu.so",
        41220011,
        "at::_ops::addmm::call(at::Tensor const&, at::Tensor const&, at::Tensor const&, c10::Scalar const&, c10::Scalar const&)",
    ),
    *INTERPRETER[:1],
    python(f"{SITE}torch/nn/modules/linear.py", 125, "forward"),
    *INTERPRETER[1:],
    *START,
    python("/home/me/model.py", 33, "forward"),
    python("/home/me/train.py", 40, "train_step"),
    python("/home/me/train.py", 60, "<module>"),
]
# The autograd thread runs no Python.
backward = [
    *UNWINDER,
    native("libtorch_cpu.so", 40110203, "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)"),
    *ENGINE,
]
library_only = [*UNWINDER, *INTERPRETER, python(f"{SITE}torch/optim/adam.py", 185, "_init_group"), *START]
nothing = [*UNWINDER, {"filename": "??", "line": 0, "name": "??"}]
loader = [
    python(f"{SITE}torch/utils/data/_utils/pin_memory.py", 98, "pin_memory"),
    python("/home/me/data.py", 7, "prefetch"),
]

BASE = 0x7F0000000000
clock = 1_700_000_000_000_000


def entry(action, addr, size, frames, stream=0, **more):
    global clock
    clock += 1000
    place = {"device_free": addr} if action == "oom" else {"addr": addr}
    return {
        "action": action,
        **place,
        "size": size,
        "stream": stream,
        "time_us": clock,
        "frames": frames,
        "pool_id": (0, 0),
        "compile_context": "N/A",
        "user_metadata": "",
        **more,
    }


device0 = [
    entry("segment_map", BASE, 64 * MIB, model),
    entry("alloc", BASE, 8 * MIB, model),
    entry("alloc", BASE + 8 * MIB, 12 * MIB, forward),
    entry("alloc", BASE + 20 * MIB, 4 * MIB, forward),
    entry("alloc", BASE + 24 * MIB, 10 * MIB, backward, user_metadata='{"phase":"backward"}'),
    entry("alloc", BASE + 34 * MIB, 16 * MIB, library_only),
    entry("annotate", BASE + 34 * MIB, 16 * MIB, [], user_metadata="moments"),
    entry("free_requested", BASE + 24 * MIB, 10 * MIB, backward),
    entry("free_completed", BASE + 24 * MIB, 10 * MIB, backward),
    entry("alloc", BASE + 24 * MIB, 1000, nothing),
    entry("oom", 3 * MIB, 100 * MIB, forward),
    entry("snapshot", 0, 0, []),
]


def block(address, size, requested, state, frames):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames}


segment = {
    "device": 0,
    "address": BASE,
    "total_size": 64 * MIB,
    "allocated_size": 40 * MIB + 1024,
    "active_size": 40 * MIB + 1024,
    "requested_size": 40 * MIB + 1000,
    "stream": 0,
    "segment_type": "large",
    "segment_pool_id": (0, 0),
    "is_expandable": True,
    "frames": model,
    "blocks": [
        block(BASE, 8 * MIB, 8 * MIB, "active_allocated", model),
        block(BASE + 8 * MIB, 12 * MIB, 12 * MIB, "active_allocated", forward),
        block(BASE + 20 * MIB, 4 * MIB, 4 * MIB, "active_allocated", forward),
        block(BASE + 24 * MIB, 1024, 1000, "active_pending_free", nothing),
        block(BASE + 24 * MIB + 1024, 10 * MIB - 1024, 0, "inactive", []),
        block(BASE + 34 * MIB, 16 * MIB, 16 * MIB, "active_allocated", library_only),
        block(BASE + 50 * MIB, 14 * MIB, 0, "inactive", []),
    ],
}
HOST = 0x7E0000000000
snapshot = {
    "segments": [segment],
    "device_traces": [device0, []],
    "allocator_settings": {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": True,
        "graph_capture_record_stream_reuse": False,
        "max_cached_size": -1,
        "max_round_threshold": -1,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "roundup_power2_divisions": {str(2**i): 0 for i in range(16)},
    },
    "external_annotations": [{"device": 0, "time_us": clock, "stage": "START", "name": "train_step"}],
    "host_segments": [
        {"address": HOST, "size": 2 * MIB, "state": "active_allocated", "segment_pool_id": (0, 0), "frames": loader},
        {"address": HOST + 2 * MIB, "size": MIB, "state": "inactive", "segment_pool_id": (0, 0), "frames": []},
    ],
    "host_traces": [
        entry("segment_alloc", HOST, 2 * MIB, loader),
        entry("alloc", HOST, 2 * MIB, loader),
        entry("segment_alloc", HOST + 2 * MIB, MIB, loader),
        entry("alloc", HOST + 2 * MIB, MIB, loader),
        entry("free_requested", HOST + 2 * MIB, MIB, loader),
        entry("free_completed", HOST + 2 * MIB, MIB, loader),
    ],
}
opener = gzip.open if sys.argv[1].endswith(".gz") else open
with opener(sys.argv[1], "wb") as out:
    pickle.dump(snapshot, out)
