package pystack

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/testkit/retry"
	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// churn runs one piece of code after the other, each in the memory of the one before as far as the
// interpreter likes, and notes when each begins. A piece is known by the line that it calls spin from.
const churn = `
import importlib, marshal, os, sys, tempfile, time, types
import harness

LOG = [(0, "")]

def spin(seconds):
    frame = sys._getframe(1)
    piece = "%s:%d" % (os.path.basename(frame.f_code.co_filename), frame.f_lineno)
    del frame
    if LOG[-1][1] != piece:
        LOG.append((time.monotonic_ns(), piece))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def blobs(body, file, pick=lambda code: code):
    """Code objects of one shape that differ in their lines, as bytes: those made of them take one address."""
    return [marshal.dumps(pick(compile("\n" * number + body, file, "exec"))) for number in range(40)]

def inner(code):
    return next(constant for constant in code.co_consts if hasattr(constant, "co_code"))

STATEMENTS = blobs("spin(SECONDS)", "/tmp/cell.py")
NAMELESS = blobs("(lambda: spin(SECONDS))()", "/tmp/cell.py")
FUNCTIONS = blobs("def work(): spin(SECONDS)", "/tmp/own.py", inner)
SHORT = blobs("def work(): spin(0.0003)", "/tmp/own.py", inner)

def statement(number):
    exec(marshal.loads(STATEMENTS[number % 40]), {"spin": spin})

def nameless(number):
    exec(marshal.loads(NAMELESS[number % 40]), {"spin": spin})

def function(number):
    types.FunctionType(marshal.loads(FUNCTIONS[number % 40]), {"spin": spin})()

def often(number):
    work = types.FunctionType(marshal.loads(SHORT[number % 40]), {"spin": spin})
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        work()

def module(number, folder=tempfile.mkdtemp()):
    if folder not in sys.path:
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
    name = f"shape_{number:05}"
    with open(os.path.join(folder, name + ".py"), "w") as file:
        file.write(f"import __main__\n__main__.spin(SECONDS)\n")
    importlib.invalidate_caches()
    importlib.import_module(name)
    del sys.modules[name]
    os.unlink(os.path.join(folder, name + ".py"))

def one_round(numbers=iter(range(1 << 30))):
    PIECE(next(numbers))
    LOG.append((time.monotonic_ns(), ""))

harness.drive(one_round, lambda: {"log": LOG})
`

// TestCodeThatComesAndGoes compares each sample with what the program says of itself: whose lines are
// shown of code objects that take each other's place.
func TestCodeThatComesAndGoes(t *testing.T) {
	for turn, test := range []struct {
		piece   string
		seconds float64
		wrong   float64 // at most, as a share of the time
	}{
		{"statement", 0.01, 0.002}, {"statement", 0.3, 0.002}, {"nameless", 0.02, 0.002}, {"module", 0.01, 0.002},
		// Functions that have settled are noticed to be others some samples late.
		{"function", 0.01, 0.002}, {"function", 0.5, 0.01}, {"often", 0.3, 0.015},
	} {
		t.Run(fmt.Sprint(test.piece, " ", test.seconds), func(t *testing.T) {
			eachVersionInTurn(t, turn, func(t *testing.T, python truth.Interpreter) {
				source := strings.NewReplacer("PIECE", test.piece, "SECONDS", fmt.Sprint(test.seconds)).Replace(churn)
				wrong, judged, example := 0.0, 0.0, ""
				retry.Again(t, func(try *retry.Attempt) {
					r := sampleHeld(try, python, truth.Workload{Name: "churn", Source: source},
						max(time.Second, time.Duration(5*test.seconds*float64(time.Second))), SampleOptions{Budget: -1})
					w, j, e := judgeLog(r)
					if wrong, judged = wrong+w, judged+j; e != "" {
						example = e
					}
					t.Logf("%d pieces; %.3f %% of %.2f s is another's: %s", len(r.measured.Log)/2, 100*wrong/judged, judged, example)
					if judged < 0.2 {
						try.Errorf("%.2f s could be judged", judged)
					}
				})
				if wrong > test.wrong*judged {
					t.Errorf("%.2f %% of %.2f s is at another piece's line, at most %.2f %%: %s", 100*wrong/judged, judged, 100*test.wrong, example)
				}
			})
		})
	}
}

// judgeLog sums the seconds for which the main thread is shown at another piece than the one that ran, and
// those for which it is shown at any. Two milliseconds at both ends of a piece count for nothing, since
// samples are a millisecond apart, and neither do times at which the sampler was off its CPU.
func judgeLog(r run) (wrong, judged float64, example string) {
	const margin = 2 * timeline.Nanos(time.Millisecond)
	spans := spansOfMain(r.rec)
	for i, phase := range r.measured.Log {
		if phase.Name == "" || i+1 == len(r.measured.Log) {
			continue
		}
		for _, seen := range r.seen(phase.AtNs, r.measured.Log[i+1].AtNs) {
			from, to := timeline.Nanos(seen[0]-r.rec.Origin)+margin, timeline.Nanos(seen[1]-r.rec.Origin)-margin
			for len(spans) > 0 && spans[0].End <= from {
				spans = spans[1:]
			}
			for _, s := range spans {
				start, end := max(s.Start, from), min(s.End, to)
				if start >= end {
					break
				}
				got := pieceOf(r.rec, s.Node)
				if got == "" {
					continue
				}
				judged += (end - start).Seconds()
				if got != phase.Name {
					wrong += (end - start).Seconds()
					example = fmt.Sprintf("%s shown as %s", phase.Name, got)
				}
			}
		}
	}
	return wrong, judged, example
}

func spansOfMain(rec *timeline.Recording) []timeline.Span {
	for i := range rec.Threads {
		if rec.Threads[i].Main {
			return rec.Threads[i].Spans
		}
	}
	return nil
}

// seen cuts a stretch of time into those between whose ends the sampler looked every other millisecond.
func (r run) seen(from, to int64) (stretches [][2]int64) {
	first, _ := slices.BinarySearch(r.looks, from)
	last := from
	for _, look := range append(slices.Clone(r.looks[first:]), to) {
		look = min(look, to)
		if look-last > int64(2*time.Millisecond) {
			stretches = append(stretches, [2]int64{from, last})
			from = look
		}
		if last = look; look == to {
			break
		}
	}
	return append(stretches, [2]int64{from, to})
}

// pieceOf is the line of a piece that is on the stack, just above spin; empty if none is.
func pieceOf(rec *timeline.Recording, node timeline.NodeID) string {
	above := false
	for ; node != timeline.RootNode; node = rec.Nodes[node].Parent {
		f := rec.Frames[rec.Nodes[node].Frame]
		if above {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		above = f.Function == "spin"
	}
	return ""
}
