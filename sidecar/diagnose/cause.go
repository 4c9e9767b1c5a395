package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// causeRule recognises a cause by a frame anywhere in the stack or by the text
// of the line at its leaf. All conditions given must hold.
type causeRule struct {
	cause    Cause            // empty: what the thread's state says
	states   []timeline.State // empty: any
	files    []string         // a frame's file contains one of them
	function string           // that frame's qualified name contains it; alone: some frame's
	source   *regexp.Regexp   // the leaf's text, if it is the user's own code and uses a GPU: C calls have no frame
	own      *regexp.Regexp   // the qualified name of a frame of the user's own code
	workers  bool             // the program has worker processes
	hint     string
}

// Hints name the change, not the virtue.
const (
	hintLoaderInline = "the batches are made in this very thread: DataLoader(num_workers=4 or more, pin_memory=True, persistent_workers=True)"
	hintLoaderMore   = "the workers are too slow: more num_workers, prefetch_factor=4, cheaper or cached transforms, pin_memory=True"
	hintLoader       = "prepare the next batch while the GPU works: worker processes, prefetching, data decoded in advance"
	hintSync         = "this waits for the GPU: move .item()/.cpu()/print out of the loop, or do it every 50 steps on a detached tensor"
	hintCopy         = "copy from pinned memory without waiting: pin_memory=True in the loader and .to(device, non_blocking=True)"
	hintCompile      = "this happens once per shape: warm up first, keep shapes fixed (dynamic=True or padding), reuse the compile cache"
	hintCheckpoint   = "save less often, or hand a CPU copy to a thread (torch.distributed.checkpoint.async_save) so that the GPU goes on"
	hintLaunch       = "the GPU is faster than its launches: larger batch, torch.compile(mode='reduce-overhead') or CUDA graphs, fused optimizer (fused=True)"
	hintRanks        = "ranks wait for the slowest: balance the batches, overlap communication with the backward pass (DDP's buckets)"
	hintIO           = "read ahead in a thread or worker process, keep files local and large, cache what is read twice"
	hintGIL          = "another Python thread holds the GIL: move its work into a process or into code that releases it"
	hintPython       = "vectorise it, do it on the GPU, or move it into the loader's workers"
	hintNative       = "do it on the GPU, or in the loader's workers while the GPU computes"
	hintSleep        = "let the GPU have work queued before waiting here"
	hintCPU          = "more threads than CPUs: lower torch.set_num_threads / OMP_NUM_THREADS or the number of workers"
	hintAwait        = "start more at once: awaits that stand in a row can run together (asyncio.gather, TaskGroup)"
	hintSetUp        = "before the first kernel: imports, building the model, moving it to the GPU; do it in a cell of its own"
)

// causeRules in order of precedence: the first that fits wins.
var causeRules = []causeRule{
	{cause: Compilation, hint: hintCompile, files: []string{
		// eval_frame.py is left out on purpose: it is under every call of a compiled function.
		"/torch/_dynamo/convert_frame.py", "/torch/_dynamo/symbolic_convert.py", "/torch/_inductor/compile_fx.py",
		"/torch/_inductor/graph.py", "/torch/_inductor/scheduler.py", "/torch/_inductor/codecache.py",
		"/torch/utils/cpp_extension.py", "/triton/compiler/", "/triton/backends/", "/triton/runtime/autotuner.py",
		"/jax/_src/compiler.py", "/jax/_src/interpreters/mlir.py", "/jax/_src/interpreters/partial_eval.py",
		"/tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "/numba/core/",
	}},
	{cause: Checkpoint, hint: hintCheckpoint, files: []string{
		"/torch/serialization.py", "/torch/distributed/checkpoint/", "/safetensors/", "/joblib/numpy_pickle",
		"/keras/src/saving/", "/orbax/checkpoint/", "/tensorflow/python/checkpoint/", "/lightning/fabric/utilities/cloud_io.py",
	}},
	{cause: Checkpoint, hint: hintCheckpoint, source: regexp.MustCompile(
		`\b(torch\.save|pickle\.dumps?|joblib\.dump|np\.savez?|save_file|savez_compressed)\s*\(|\.save_pretrained\(|\.save_weights\(`)},
	{cause: DataLoading, hint: hintLoaderInline, files: []string{"/torch/utils/data/"}, function: "_SingleProcessDataLoaderIter"},
	{cause: DataLoading, hint: hintLoaderMore, files: []string{"/torch/utils/data/"}, function: "_MultiProcessingDataLoaderIter"},
	{cause: DataLoading, hint: hintLoader, files: []string{
		"/torch/utils/data/", "/tensorflow/python/data/", "/site-packages/datasets/", "/webdataset/", "/nvidia/dali/",
		"/torchdata/", "/litdata/", "/streaming/base/", "/torch_geometric/loader/", "/dgl/dataloading/", "/grain/_src/",
	}},
	{cause: DataLoading, hint: hintLoaderMore, workers: true, states: []timeline.State{timeline.StateWaiting, timeline.StateIO},
		files: []string{"/multiprocessing/queues.py", "/multiprocessing/connection.py", "/multiprocessing/pool.py", "/queue.py", "/concurrent/futures/"}},
	{cause: DataLoading, hint: hintLoader, own: regexp.MustCompile(
		`(^|\.)((load|read|fetch|get|next|make|prepare)_(batch|sample|item|data|image|example|shard|chunk)\w*|collate\w*|__getitem__|augment\w*|\w*data_?loader\w*)$`)},
	{cause: Communicate, hint: hintRanks, files: []string{
		"/torch/distributed/distributed_c10d.py", "/torch/distributed/c10d_logger.py", "/deepspeed/comm/", "/horovod/", "/mpi4py/",
	}},
	{cause: Transfer, hint: hintSync, function: "synchronize"}, // torch.cuda's, a stream's, an event's, cupy's
	{cause: Transfer, hint: hintSync, files: []string{"/torch/_tensor_str.py"}},
	{cause: Transfer, hint: hintSync, source: regexp.MustCompile(
		`\.(item|tolist|cpu|numpy|block_until_ready)\(|\bsynchronize\(|\bdevice_get\(|\bfloat\(\s*\w*loss|\basnumpy\(`)},
	{cause: Transfer, hint: hintCopy, source: regexp.MustCompile(`\.(to|cuda|copy_)\(|\bdevice_put\(|\bcp\.asarray\(`)},
	{states: []timeline.State{timeline.StatePython, timeline.StateNative}, hint: hintLaunch, files: []string{
		"/torch/nn/", "/torch/optim/", "/torch/autograd/", "/torch/_tensor.py", "/torch/amp/", "/torch/cuda/amp/",
		"/flax/", "/keras/src/layers/", "/keras/src/backend/",
	}},
	{states: []timeline.State{timeline.StatePython, timeline.StateNative}, hint: hintLaunch,
		source: regexp.MustCompile(`\.backward\(|\b(optimizer|opt|optim|scaler)\.step\(|\bmodel\(`)},
	{cause: InputOutput, hint: hintIO, files: []string{
		"/ssl.py", "/socket.py", "/http/client.py", "/urllib3/", "/requests/", "/botocore/", "/fsspec/", "/s3fs/", "/gcsfs/",
	}, states: []timeline.State{timeline.StateWaiting, timeline.StateIO}},
}

// stateCauses is the cause where no rule fits.
var stateCauses = [timeline.NumStates]struct {
	cause Cause
	hint  string
}{
	timeline.StatePython:  {PythonCPU, hintPython},
	timeline.StateNative:  {NativeCPU, hintNative},
	timeline.StateWaiting: {Waiting, hintSleep},
	timeline.StateIO:      {InputOutput, hintIO},
	timeline.StateGIL:     {GILWait, hintGIL},
	timeline.StateOff:     {NoCPU, hintCPU},
	timeline.StateUnknown: {UnknownCause, ""},
}

// classify names the cause of idleness while a thread has this stack and state.
func (s *stacks) classify(frames []timeline.Frame, state timeline.State) (Cause, string, line) {
	if len(frames) == 0 || int(state) >= len(stateCauses) {
		return UnknownCause, "", line{}
	}
	at := s.charged(frames)
	byState := stateCauses[state]
	// A thread that wants the GIL or a CPU is held up by that, whatever it does.
	if state == timeline.StateGIL || state == timeline.StateOff || state == timeline.StateUnknown {
		return byState.cause, byState.hint, at
	}
	for i := range causeRules {
		if r := &causeRules[i]; r.matches(s, frames, state) {
			if r.cause == "" {
				return byState.cause, r.hint, at
			}
			return r.cause, r.hint, at
		}
	}
	return byState.cause, byState.hint, at
}

func (r *causeRule) matches(s *stacks, frames []timeline.Frame, state timeline.State) bool {
	if r.workers && !s.hasWorkers() || (r.cause == Transfer || r.own != nil || r.source != nil) && !s.device {
		return false
	}
	if r.own != nil && !slices.ContainsFunc(frames, func(f timeline.Frame) bool {
		return r.own.MatchString(f.Function) && s.own(f)
	}) {
		return false
	}
	if len(r.states) > 0 && !slices.Contains(r.states, state) {
		return false
	}
	if leaf := frames[0]; r.source != nil && !(s.own(leaf) && s.says(line{leaf.File, leaf.Line}, r.source)) {
		return false
	}
	if len(r.files) == 0 && r.function == "" {
		return true
	}
	for _, f := range frames {
		if strings.Contains(f.Function, r.function) && (len(r.files) == 0 || containsAny(f.File, r.files)) {
			return true
		}
	}
	return false
}

// hasWorkers tells whether the target has processes that could prepare data.
func (s *stacks) hasWorkers() bool {
	for _, p := range s.rec.Processes {
		if p.Role == "worker" || p.Role == "child" {
			return true
		}
	}
	return false
}

func containsAny(file string, parts []string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	for _, part := range parts {
		if strings.Contains(file, part) {
			return true
		}
	}
	return false
}
