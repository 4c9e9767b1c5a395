package diagnose

import (
	"regexp"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// causeRule recognises a cause by a frame anywhere in the stack or by the text of
// the line at its leaf. All conditions given must hold.
type causeRule struct {
	cause  Cause // empty: what the thread's state says
	states states
	device bool // only where the program uses a GPU
	// Of some frame, or of one that the innermost own line called:
	inner    bool
	files    []string       // its file contains one of them
	function string         // its qualified name contains this
	own      *regexp.Regexp // it is of the user's own code and its qualified name is like this
	// Of the leaf, if it is of the user's own code: C calls have no frame.
	source  *regexp.Regexp
	workers bool // the program has worker processes
	awaited bool // the leaf is a coroutine's frame that awaits while its thread is in the event loop
}

// states is a set of thread states; the zero value is all of them.
type states uint8

func oneOf(list ...timeline.State) states {
	var set states
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (s states) has(state timeline.State) bool { return s == 0 || s&(1<<state) != 0 }

var (
	onCPU  = oneOf(timeline.StatePython, timeline.StateNative)
	offCPU = oneOf(timeline.StateWaiting, timeline.StateIO)
)

// pool is the wait for a pool of workers. Whether they are threads or processes
// is not on the stack: resolve turns it into Thread or Child.
const pool Cause = "pool"

// selects is a call of the system's select or poll: tables and queries have a select of their own.
const selects = `(\bselect\.select\(|(^|[^.\w])select\(\s*\[|\.poll\()`

// causeRules in order of precedence: the first that fits wins.
var causeRules = []causeRule{
	{cause: Compile, files: []string{
		// eval_frame.py is left out on purpose: it is under every call of a compiled function.
		"/torch/_dynamo/convert_frame.py", "/torch/_dynamo/symbolic_convert.py", "/torch/_inductor/compile_fx.py",
		"/torch/_inductor/graph.py", "/torch/_inductor/scheduler.py", "/torch/_inductor/codecache.py",
		"/torch/_inductor/async_compile.py", "/torch/utils/cpp_extension.py", "/triton/compiler/", "/triton/backends/",
		"/triton/runtime/autotuner.py", "/jax/_src/compiler.py", "/jax/_src/interpreters/mlir.py", "/jax/_src/interpreters/partial_eval.py",
		"/tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "/numba/core/",
	}},
	{cause: Checkpoint, files: []string{
		"/torch/serialization.py", "/torch/distributed/checkpoint/", "/safetensors/", "/joblib/numpy_pickle",
		"/keras/src/saving/", "/orbax/checkpoint/", "/tensorflow/python/checkpoint/", "/lightning/fabric/utilities/cloud_io.py",
	}},
	{cause: Checkpoint, device: true, source: regexp.MustCompile(
		`\b(torch\.save|pickle\.dumps?|joblib\.dump|np\.savez?|save_file|savez_compressed)\s*\(|\.save_pretrained\(|\.save_weights\(`)},
	{cause: Draw, files: []string{
		"/matplotlib/", "/matplotlib_inline/", "/mpl_toolkits/", "/seaborn/", "/plotly/", "/kaleido/", "/bokeh/", "/altair/", "/plotnine/",
	}},

	{cause: LoadHere, files: []string{"/torch/utils/data/"}, function: "_SingleProcessDataLoaderIter"},
	{cause: LoadWorker, files: []string{"/torch/utils/data/"}, function: "_MultiProcessingDataLoaderIter"},
	{cause: Load, files: []string{
		"/torch/utils/data/", "/tensorflow/python/data/", "/site-packages/datasets/", "/webdataset/", "/nvidia/dali/",
		"/torchdata/", "/litdata/", "/streaming/base/", "/torch_geometric/loader/", "/dgl/dataloading/", "/grain/_src/",
	}},
	// Other workers than a loader's make data only where a GPU waits for it.
	{cause: LoadWorker, device: true, workers: true, states: offCPU, files: []string{
		"/multiprocessing/queues.py", "/multiprocessing/connection.py", "/multiprocessing/pool.py", "/queue.py", "/concurrent/futures/",
	}},
	{cause: Load, device: true, own: regexp.MustCompile(
		`(^|\.)((load|read|fetch|get|next|make|prepare)_(batch|sample|item|data|image|example|shard|chunk)\w*|collate\w*|__getitem__|augment\w*|\w*data_?loader\w*)$`)},

	{cause: Collective, files: []string{
		"/torch/distributed/distributed_c10d.py", "/torch/distributed/c10d_logger.py", "/deepspeed/comm/", "/horovod/", "/mpi4py/",
	}},
	{cause: Sync, device: true, function: "synchronize"}, // torch.cuda's, a stream's, an event's, cupy's
	{cause: Sync, device: true, files: []string{"/torch/_tensor_str.py"}},
	{cause: Sync, device: true, source: regexp.MustCompile(
		`\.(item|tolist|cpu|numpy|block_until_ready)\(|\bsynchronize\(|\bdevice_get\(|\bfloat\(\s*\w*loss|\basnumpy\(`)},
	{cause: Copy, device: true, source: regexp.MustCompile(`\.(to|cuda|copy_)\(|\bdevice_put\(|\bcp\.asarray\(`)},
	{cause: Launch, device: true, states: onCPU, files: []string{
		"/torch/nn/", "/torch/optim/", "/torch/autograd/", "/torch/_tensor.py", "/torch/amp/", "/torch/cuda/amp/",
		"/flax/", "/keras/src/layers/", "/keras/src/backend/",
	}},
	{cause: Launch, device: true, states: onCPU, source: regexp.MustCompile(`\.backward\(|\b(optimizer|opt|optim|scaler)\.step\(|\bmodel\(`)},

	{cause: UserInput, inner: true, states: offCPU, files: []string{"/ipykernel/kernelbase.py"}, function: "_input_request"},
	{cause: UserInput, inner: true, states: offCPU, files: []string{"/getpass.py"}},
	{cause: UserInput, states: offCPU, source: regexp.MustCompile(`\b(input|getpass)\(`)},
	{cause: Child, inner: true, files: []string{"/subprocess.py"}, function: "_execute_child"}, // vfork: the parent goes on when the child runs
	{cause: Child, inner: true, states: offCPU, files: []string{
		"/subprocess.py", "/pexpect/", "/ptyprocess/", "/IPython/utils/_process", "/multiprocessing/process.py", "/multiprocessing/popen_",
	}},
	{cause: Child, states: offCPU, source: regexp.MustCompile(`\bos\.(system|wait|waitpid|wait4)\(`)},
	{cause: Thread, inner: true, states: offCPU, files: []string{"/threading.py"}, function: "Thread.join"},
	{cause: Thread, inner: true, states: offCPU, files: []string{"/threading.py"}, function: "_wait_for_tstate_lock"},
	{cause: Thread, inner: true, states: offCPU, files: []string{"/threading.py"}, function: "_shutdown"},
	{cause: pool, inner: true, states: offCPU, files: []string{
		"/multiprocessing/", "/concurrent/futures/", "/joblib/", "/loky/", "/dask/", "/distributed/", "/ray/",
	}},
	{cause: Database, inner: true, states: offCPU, files: []string{
		"/sqlalchemy/", "/psycopg2/", "/psycopg/", "/pymysql/", "/MySQLdb/", "/sqlite3/", "/asyncpg/", "/pymongo/", "/redis/", "/snowflake/",
		"/oracledb/", "/pyodbc", "/clickhouse_connect/",
	}},
	{cause: Database, states: offCPU, source: regexp.MustCompile(`\.(execute|executemany|executescript|fetchall|fetchone|fetchmany|commit)\(|\bread_sql`)},
	{cause: Network, inner: true, states: offCPU, files: []string{
		"/ssl.py", "/socket.py", "/http/client.py", "/urllib/", "/urllib3/", "/requests/", "/httpx/", "/httpcore/", "/aiohttp/", "/boto3/",
		"/botocore/", "/socketserver.py", "/fsspec/", "/s3fs/", "/gcsfs/", "/google/cloud/", "/huggingface_hub/", "/grpc/", "/websocket", "/paramiko/",
		"/smtplib.py", "/ftplib.py",
	}},
	{cause: Network, states: offCPU, source: regexp.MustCompile(`\b\w*sock\w*\.(recv\w*|send\w*|connect|accept)\(|\burlopen\(`)},
	{cause: Sleep, states: offCPU, source: regexp.MustCompile(`\bselect\(\s*\[\]\s*,\s*\[\]\s*,\s*\[\]`)}, // with a timeout
	{cause: Waiting, states: offCPU, source: regexp.MustCompile(selects + `.*(std(in|out|err)|pipe|proc)`)},
	{cause: Network, states: offCPU, source: regexp.MustCompile(selects)},
	{cause: EventLoop, inner: true, states: offCPU, files: []string{"/selectors.py"}, function: "select"},
	{cause: Sleep, states: offCPU, source: regexp.MustCompile(`\bsleep\(`)},
	{cause: Sleep, inner: true, states: offCPU, files: []string{"/tenacity/", "/backoff/"}},
	{cause: Sleep, inner: true, states: offCPU, files: []string{"/asyncio/tasks.py"}, function: "sleep"},
	{cause: EventLoop, awaited: true, states: offCPU}, // whatever the line calls, it awaits what that returned
	{cause: Lock, inner: true, states: offCPU, files: []string{"/threading.py", "/queue.py"}},
	{cause: Lock, states: offCPU, source: regexp.MustCompile(`\.(acquire|get|wait)\(`)},
}

// stateCauses is the cause where no rule fits.
var stateCauses = [timeline.NumStates]Cause{
	timeline.StatePython:  Python,
	timeline.StateNative:  Native,
	timeline.StateWaiting: Waiting,
	timeline.StateIO:      InOut,
	timeline.StateGIL:     GIL,
	timeline.StateOff:     NoCPU,
	timeline.StateUnknown: Unknown,
}

// waitCauses is the cause where no rule fits and the system call is known.
var waitCauses = [timeline.NumWaits]Cause{
	timeline.WaitSleep: Sleep, timeline.WaitLock: Lock, timeline.WaitChild: Child, timeline.WaitSocket: Network,
}

// classify tells what a thread with this stack, leaf first, and state was doing,
// and the place it is charged to.
func (s *stacks) classify(stack []timeline.FrameID, state timeline.State, wait timeline.Wait) (Cause, Place) {
	if len(stack) == 0 || int(state) >= len(stateCauses) {
		return Unknown, Place{}
	}
	at := s.charged(stack)
	byState := stateCauses[state]
	// A thread that wants the GIL or a CPU is held up by that, whatever it does.
	if state == timeline.StateGIL || state == timeline.StateOff || state == timeline.StateUnknown {
		return byState, at
	}
	if s.importing(stack) {
		return Import, at
	}
	if cause, ok := phaseCauses[s.phase(stack)]; ok {
		return cause, at
	}
	inner, all := s.rulesSeen(stack)
	for i := range causeRules {
		r := &causeRules[i]
		fits := all
		if r.inner {
			fits = inner
		}
		if r.states.has(state) && r.matches(s, fits&(1<<i) != 0, stack[0]) {
			return r.cause, at
		}
	}
	if (byState == Waiting || byState == InOut) && int(wait) < len(waitCauses) && waitCauses[wait] != "" {
		return waitCauses[wait], at
	}
	return byState, at
}

// rulesSeen are the rules of which some frame fits: one that the innermost own line
// called, or any.
func (s *stacks) rulesSeen(stack []timeline.FrameID) (inner, all uint64) {
	own := s.ownest(stack)
	for i, id := range stack {
		all |= s.facts[id].rules
		if own < 0 || i < own {
			inner = all
		}
	}
	return inner, all
}

// phaseCauses are the causes of what a notebook does around a cell's code.
var phaseCauses = map[timeline.Phase]Cause{
	timeline.PhasePrepare: Around, timeline.PhaseDisplay: Display, timeline.PhaseTraceback: Around, timeline.PhaseFigures: Draw,
	timeline.PhaseCallbacks: Around,
}

// matches tells whether a rule holds; framed says that some frame fits it.
func (r *causeRule) matches(s *stacks, framed bool, leaf timeline.FrameID) bool {
	switch {
	case r.device && !s.device, r.workers && !s.hasWorkers(), r.looksAtFrames() && !framed, r.awaited && !s.rec.Frames[leaf].Suspended:
		return false
	case r.source == nil:
		return true
	}
	f := s.rec.Frames[leaf]
	return s.facts[leaf].own && s.says(Place{f.File, f.Line}, r.source)
}

func (r *causeRule) looksAtFrames() bool { return len(r.files) > 0 || r.function != "" || r.own != nil }

// fits tells whether a frame meets a rule's conditions on frames. Files are a
// library's: a user's folder may have the same name.
func (r *causeRule) fits(f timeline.Frame, own bool) bool {
	return r.looksAtFrames() && (len(r.files) == 0 || !own && containsAny(f.File, r.files)) &&
		strings.Contains(f.Function, r.function) && (r.own == nil || own && r.own.MatchString(f.Function))
}

// hasWorkers tells whether the target has processes that could prepare data.
func (s *stacks) hasWorkers() bool {
	for _, p := range s.rec.Processes {
		if p.IsWorker() || p.Role == timeline.RoleChild {
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
