"""Write a small snapshot of the documented structure: make_snapshot.py PROTOCOL FILE."""

import pickle
import sys

MIB = 1 << 20


def frames(*places):
    return [{"filename": f, "line": n, "name": name} for f, n, name in places]


# Shared lists, as PyTorch writes them: pickle refers back to the first one.
model = frames(("/usr/lib/python3/site-packages/torch/nn/modules/linear.py", 106, "__init__"), ("/home/me/train.py", 12, "build"))
forward = frames(("/usr/lib/python3/site-packages/torch/nn/functional.py", 99, "gelu"), ("/home/me/model.py", 33, "forward"))
backward = frames(("/usr/lib/python3/site-packages/torch/autograd/graph.py", 769, "_engine_run_backward"), ("/home/me/train.py", 40, "step"))
optimizer = frames(("/usr/lib/python3/site-packages/torch/optim/adam.py", 150, "_init_group"), ("/home/me/train.py", 41, "step"))

events = []
clock = 1_700_000_000_000_000
live = {}


def event(action, addr, size, stack, **more):
    global clock
    clock += 10
    events.append({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": clock, "frames": stack, **more})
    if action == "alloc":
        live[addr] = (size, stack)
    elif action == "free_completed":
        live.pop(addr, None)


BASE = 0x7F0000000000
event("segment_alloc", BASE, 64 * MIB, model)
event("alloc", BASE, 8 * MIB, model)
for step in range(3):
    for i in range(4):
        event("alloc", BASE + (8 + 4 * i) * MIB, 4 * MIB, forward)
    event("alloc", BASE + 24 * MIB, 2 * MIB, backward)
    if step == 0:
        event("alloc", BASE + 26 * MIB, 16 * MIB, optimizer)
    for i in range(4):
        addr = BASE + (8 + 4 * i) * MIB
        event("free_requested", addr, 4 * MIB, backward)
        event("free_completed", addr, 4 * MIB, backward)
    event("free_completed", BASE + 24 * MIB, 2 * MIB, backward)
event("alloc", BASE + 8 * MIB, 700, forward)
events.append({"action": "oom", "size": 100 * MIB, "device_free": 3 * MIB, "stream": 0, "time_us": clock + 5, "frames": forward})

blocks = []
at = BASE
for addr, (size, stack) in sorted(live.items()):
    if addr > at:
        blocks.append({"address": at, "size": addr - at, "requested_size": 0, "state": "inactive", "frames": []})
    rounded = -(-size // 512) * 512
    blocks.append({"address": addr, "size": rounded, "requested_size": size, "state": "active_allocated", "frames": stack})
    at = addr + rounded
blocks.append({"address": at, "size": BASE + 64 * MIB - at, "requested_size": 0, "state": "inactive", "frames": []})
segment = {
    "device": 0, "address": BASE, "total_size": 64 * MIB, "allocated_size": 0, "active_size": 0, "requested_size": 0,
    "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": model, "blocks": blocks,
}
snapshot = {
    "segments": [segment], "device_traces": [events, []],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False},
    "external_annotations": [], "big": 2**70,
}
with open(sys.argv[2], "wb") as out:
    pickle.dump(snapshot, out, protocol=int(sys.argv[1]))
