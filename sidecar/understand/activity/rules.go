package activity

import (
	"regexp"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/interpret"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// causeRule recognises a cause by a frame anywhere in the stack or by the text of
// the line at its leaf. All conditions given must hold.
type causeRule struct {
	cause  Cause // empty: what the thread's state says
	states states
	device bool // only where the program uses a GPU
	// Of some frame, or of one that the innermost own line called:
	inner    bool
	means    origin.Meanings // it is a library's that means this
	function string          // its qualified name contains this
	own      *regexp.Regexp  // it is of the user's own code and its qualified name is like this
	// Of the leaf, if it is of the user's own code: C calls have no frame.
	source  *regexp.Regexp
	workers bool // the program has worker processes
	ranks   bool // the program is one of several ranks, or has started them
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

// serve is the wait of a server for whoever may come. The program's main thread waits for the network there. Another one waits for
// nothing that the program does, and nobody waits for it.
const serve Cause = "serve"

// doing is classify for a thread.
func (s *Stacks) doing(t *timeline.Thread, stack []timeline.FrameID, state timeline.State, wait timeline.Wait) (Cause, Place) {
	cause, at := s.classify(stack, state, wait)
	switch {
	case cause != serve:
		return cause, at
	case t.Main || t.RunsCell:
		return Network, at
	}
	return EventLoop, at
}

// selects is a call of the system's select or poll: tables and queries have a select of their own.
const selects = `(\bselect\.select\(|(^|[^.\w])select\(\s*\[|\.poll\()`

var sleepCall = regexp.MustCompile(`\bsleep\(`)

// LocksFile is a line that waits for the lock of a file, by fcntl.
var LocksFile = regexp.MustCompile(`\b(flock|lockf)\(`)

// drawingRule is the bit of the rule for drawing.
var drawingRule = uint64(1) << slices.IndexFunc(causeRules, func(r causeRule) bool { return r.cause == Draw })

// causeRules in order of precedence: the first that fits wins.
var causeRules = []causeRule{
	{cause: Compile, means: origin.Compiles},
	{cause: Checkpoint, means: origin.Checkpoints},
	{cause: Checkpoint, device: true, source: regexp.MustCompile(
		`\b(torch\.save|pickle\.dumps?|joblib\.dump|np\.savez?|save_file|savez_compressed)\s*\(|\.save_pretrained\(|\.save_weights\(`)},
	{cause: Draw, means: origin.Draws},

	{cause: LoadSampler, means: origin.Samples}, // below it is a loader with workers, or without
	{cause: LoadHere, means: origin.LoadsHere},
	{cause: LoadWorker, means: origin.LoadsElsewhere},
	{cause: Load, means: origin.Loads},
	// Other workers than a loader's make data only where a GPU waits for it.
	{cause: LoadWorker, device: true, workers: true, states: offCPU, means: origin.PassesResults},
	{cause: Load, device: true, own: regexp.MustCompile(
		`(^|\.)((load|read|fetch|get|next|make|prepare)_(batch|sample|item|data|image|example|shard|chunk)\w*|collate\w*|__getitem__|augment\w*|\w*data_?loader\w*)$`)},

	{cause: Collective, means: origin.Communicates},
	{cause: Sync, device: true, function: "synchronize"}, // torch.cuda's, a stream's, an event's, cupy's
	{cause: Sync, device: true, means: origin.Synchronizes},
	{cause: Sync, device: true, source: regexp.MustCompile(
		`\.(item|tolist|cpu|numpy|block_until_ready)\(|\b\w*[sS]ynchronize\(|\bdevice_get\(|\bfloat\(\s*\w*loss|\basnumpy\(`)},
	{cause: Copy, device: true, source: regexp.MustCompile(`\.(to|cuda|copy_)\(|\bdevice_put\(|\bcp\.asarray\(`)},
	{cause: Launch, device: true, states: onCPU, means: origin.Launches},
	{cause: Launch, device: true, states: offCPU, means: origin.RunsBackward},    // by a thread of autograd's, which it waits for
	{cause: Collective, ranks: true, states: offCPU, means: origin.RunsBackward}, // in which the gradients are reduced
	{cause: Launch, device: true, states: onCPU, source: regexp.MustCompile(`\.backward\(|\b(optimizer|opt|optim|scaler)\.step\(|\bmodel\(`)},

	{cause: UserInput, inner: true, states: offCPU, means: origin.AsksUser},
	{cause: UserInput, states: offCPU, source: regexp.MustCompile(`\b(input|getpass)\(`)},
	{cause: Child, inner: true, means: origin.Spawns}, // vfork: the parent goes on when the child runs
	{cause: Child, inner: true, states: offCPU, means: origin.WaitsForChild},
	{cause: Child, states: offCPU, source: regexp.MustCompile(`\bos\.(system|wait|waitpid|wait4)\(`)},
	{cause: Thread, inner: true, states: offCPU, means: origin.Joins},
	{cause: pool, inner: true, states: offCPU, means: origin.WaitsForPool},
	{cause: Database, inner: true, states: offCPU, means: origin.AsksDatabase},
	{cause: Database, states: offCPU, source: regexp.MustCompile(`\.(execute|executemany|executescript|fetchall|fetchone|fetchmany|commit)\(|\bread_sql`)},
	{cause: serve, inner: true, states: offCPU, function: "BaseServer.serve_forever"}, // socketserver's: of http.server, wsgiref, werkzeug
	{cause: Network, inner: true, states: offCPU, means: origin.UsesNetwork},
	{cause: Network, states: offCPU, source: regexp.MustCompile(`\b\w*sock\w*\.(recv\w*|send\w*|connect|accept)\(|\burlopen\(`)},
	{cause: Sleep, states: offCPU, source: regexp.MustCompile(`\bselect\(\s*\[\]\s*,\s*\[\]\s*,\s*\[\]`)}, // with a timeout
	{cause: Waiting, states: offCPU, source: regexp.MustCompile(selects + `.*(std(in|out|err)|pipe|proc)`)},
	{cause: Network, states: offCPU, source: regexp.MustCompile(selects)},
	{cause: EventLoop, inner: true, states: offCPU, means: origin.Selects},
	{cause: Sleep, states: offCPU, source: sleepCall},
	{cause: Sleep, inner: true, states: offCPU, means: origin.Sleeps},
	{cause: EventLoop, awaited: true, states: offCPU}, // whatever the line calls, it awaits what that returned
	{cause: Lock, inner: true, states: offCPU, means: origin.Locks},
	{cause: Lock, states: offCPU, source: regexp.MustCompile(`\.(acquire|get|wait)\(`)},
	{cause: Lock, states: offCPU, source: LocksFile},
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

// classify returns what a thread with this stack, leaf first, and state was doing,
// and the place it is charged to.
func (s *Stacks) classify(stack []timeline.FrameID, state timeline.State, wait timeline.Wait) (Cause, Place) {
	if len(stack) == 0 || int(state) >= len(stateCauses) {
		return Unknown, Place{}
	}
	if state == timeline.StateOff && s.OthersTakeCPUs && !s.UsesGPU {
		return s.heldUp(stack, wait)
	}
	at := s.Charged(stack)
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
	if cause, ok := s.byRule(stack, state, wait); ok {
		return cause, at
	}
	if (byState == Waiting || byState == InOut) && int(wait) < len(waitCauses) && waitCauses[wait] != "" {
		return waitCauses[wait], at
	}
	return byState, at
}

// byRule is the cause of the first rule that fits a stack.
func (s *Stacks) byRule(stack []timeline.FrameID, state timeline.State, wait timeline.Wait) (Cause, bool) {
	inner, all := s.rulesSeen(stack)
	for i := range causeRules {
		r := &causeRules[i]
		fits := all
		if r.inner {
			fits = inner
		}
		if r.cause == Sync && r.source != nil && wait == timeline.WaitSleep && s.saysSleep(stack[0]) {
			continue // both are on the line, and it sleeps
		}
		if r.states.has(state) && r.matches(s, fits&(1<<i) != 0, stack[0]) {
			return r.cause, true
		}
	}
	return "", false
}

// heldUp is the cause of a thread that wants a CPU which others have: an import, a drawing or the like is
// that all the same, and takes the time that it takes; what would only compute waits for a CPU.
func (s *Stacks) heldUp(stack []timeline.FrameID, wait timeline.Wait) (Cause, Place) {
	cause, at := s.classify(stack, timeline.StatePython, wait)
	if cause == Python || cause == Native {
		cause = NoCPU
	}
	return cause, at
}

// rulesSeen are the rules of which some frame fits: one that the innermost own line
// called, or any. What computes for a picture is no drawing.
func (s *Stacks) rulesSeen(stack []timeline.FrameID) (inner, all uint64) {
	own, drawing := s.ownest(stack), ^uint64(0)
	for i, id := range stack {
		if s.facts[id].means&origin.Computes != 0 && all&drawingRule == 0 {
			drawing = ^drawingRule
		}
		all |= s.facts[id].rules & drawing
		if own < 0 || i < own {
			inner = all
		}
	}
	return inner, all
}

// phaseCauses are the causes of what a notebook does around a cell's code.
var phaseCauses = map[timeline.Phase]Cause{
	timeline.PhasePrepare: Around, timeline.PhaseDisplay: Display, timeline.PhaseTraceback: Around, timeline.PhaseFigures: Draw,
	timeline.PhaseCallbacks: Around, timeline.PhaseTorchTrace: Tracing,
}

// matches reports whether a rule holds; framed says that some frame fits it.
func (r *causeRule) matches(s *Stacks, framed bool, leaf timeline.FrameID) bool {
	switch {
	case r.device && !s.UsesGPU, r.workers && !s.hasWorkers(), r.ranks && !s.hasRanks, r.looksAtFrames() && !framed, r.awaited && !s.Rec.Frames[leaf].Suspended:
		return false
	case r.source == nil:
		return true
	}
	f := s.Rec.Frames[leaf]
	return s.facts[leaf].own && s.Says(Place{f.File, f.Line}, r.source)
}

// saysSleep reports whether a leaf is at a line of the user's own that sleeps.
func (s *Stacks) saysSleep(leaf timeline.FrameID) bool {
	f := s.Rec.Frames[leaf]
	return s.facts[leaf].own && s.Says(Place{f.File, f.Line}, sleepCall)
}

func (r *causeRule) looksAtFrames() bool { return r.means != 0 || r.function != "" || r.own != nil }

// fits reports whether a frame meets a rule's conditions on frames. means is what libraries' functions
// mean: a user's folder may be called like one of theirs.
func (r *causeRule) fits(f timeline.Frame, means origin.Meanings, own bool) bool {
	return r.looksAtFrames() && (r.means == 0 || means&r.means != 0) &&
		strings.Contains(f.Function, r.function) && (r.own == nil || own && r.own.MatchString(f.Function))
}

// hasWorkers reports whether the target has processes that could prepare data.
func (s *Stacks) hasWorkers() bool {
	for _, p := range s.Rec.Processes {
		if p.IsWorker() || p.Role == timeline.RoleChild {
			return true
		}
	}
	return false
}

// hasRanks reports whether a recording is of one of several ranks, or has several.
func hasRanks(rec *timeline.Recording) bool {
	ranks := 0
	for i := range rec.Processes {
		if _, is := interpret.RankOf(rec, i); is {
			ranks++
		}
	}
	return ranks > 1 || rec.Target.Rank != nil && rec.Target.Rank.World > 1
}
