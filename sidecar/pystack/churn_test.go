package pystack

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/noise"
	"github.com/omni-perf/omni-perf/sidecar/pystack/truth"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
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
	for _, test := range []struct {
		piece   string
		seconds float64
		wrong   float64 // at most, as a share of the time
	}{
		{"statement", 0.01, 0.002}, {"statement", 0.3, 0.002}, {"nameless", 0.02, 0.002}, {"module", 0.01, 0.002},
		// Functions that have settled are noticed to be others some samples late.
		{"function", 0.01, 0.002}, {"function", 0.5, 0.01}, {"often", 0.3, 0.015},
	} {
		t.Run(fmt.Sprint(test.piece, " ", test.seconds), func(t *testing.T) {
			eachVersion(t, func(t *testing.T, python truth.Interpreter) {
				source := strings.NewReplacer("PIECE", test.piece, "SECONDS", fmt.Sprint(test.seconds)).Replace(churn)
				noise.Again(t, func(try *noise.Attempt) {
					rec, measured, _ := sampleHeld(try, python, truth.Workload{Name: "churn", Source: source},
						max(time.Second, time.Duration(5*test.seconds*float64(time.Second))), SampleOptions{Budget: -1})
					wrong, judged, example := judgeLog(rec, mainThread(t, rec), measured.Log)
					t.Logf("%d pieces; %.3f %% of %.2f s is another's: %s", len(measured.Log)/2, 100*wrong/judged, judged, example)
					if judged < 0.3 || wrong > test.wrong*judged {
						try.Errorf("%.2f %% of %.2f s is at another piece's line, at most %.2f %%: %s", 100*wrong/judged, judged, 100*test.wrong, example)
					}
				})
			})
		})
	}
}

// judgeLog sums the seconds for which the thread is shown at another piece than the one that ran. The
// first two milliseconds of a piece and the last count for nothing: samples are a millisecond apart.
func judgeLog(rec *timeline.Recording, thread timeline.ThreadID, log []truth.Phase) (wrong, judged float64, example string) {
	const margin = 2 * timeline.Nanos(time.Millisecond)
	spans := rec.Threads[thread].Spans
	for i, phase := range log {
		if phase.Name == "" || i+1 == len(log) {
			continue
		}
		from, to := timeline.Nanos(phase.AtNs-rec.Origin), timeline.Nanos(log[i+1].AtNs-rec.Origin)
		from, to = from+margin, to-margin
		for len(spans) > 0 && spans[0].End <= from {
			spans = spans[1:]
		}
		for _, s := range spans {
			start, end := max(s.Start, from), min(s.End, to)
			if start >= end {
				break
			}
			got := pieceOf(rec, s.Node)
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
	return wrong, judged, example
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
