package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/doors/profdir"
	"github.com/omni-perf/omni-perf/sidecar/doors/program/marks"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Torch is what torch.profiler is to record in the processes of a program. The zero value: the default windows of its steps.
type Torch struct {
	Figures map[string]int // of a schedule, by the names that %%omni_perf --torch has; nil: the default's
	Whole   bool           // all of the program, in place of windows
	Words   []string       // what is recorded besides: of torchWords
	Folder  string         // where traces and files beside them are kept; empty: nowhere
}

// The figures of a schedule, as magics/omni_perf/schedule.py has them, and what is recorded besides, as options.py has it.
var (
	torchFigures = []string{"wait", "warmup", "active", "repeat", "skip_first"}
	torchWords   = []string{"shapes", "stack", "memory", "flops", "modules"}
)

// TorchWords are all words that ParseTorch knows.
func TorchWords() []string {
	list := []string{"whole"}
	for _, f := range torchFigures {
		list = append(list, f+"=N")
	}
	return append(list, torchWords...)
}

// ParseTorch reads what to record, as in "wait=2,active=3,shapes", or "whole". Its error is a fragment about the text.
func ParseTorch(text string) (t Torch, err error) {
	for word := range strings.SplitSeq(text, ",") {
		name, figure, isFigure := strings.Cut(strings.ReplaceAll(strings.TrimSpace(word), "-", "_"), "=")
		switch {
		case word == "" || word == "default":
		case isFigure && slices.Contains(torchFigures, name):
			n, err := strconv.Atoi(figure)
			if err != nil || n < 0 || n > 1<<30 {
				return t, fmt.Errorf("%s takes a number of steps, not %q", name, figure)
			}
			if t.Figures == nil {
				t.Figures = make(map[string]int)
			}
			t.Figures[name] = n
		case !isFigure && name == "whole":
			t.Whole = true
		case !isFigure && slices.Contains(torchWords, name):
			t.Words = append(t.Words, name)
		default:
			return t, fmt.Errorf("%q is none of %s", word, strings.Join(TorchWords(), ", "))
		}
	}
	if active, given := t.Figures["active"]; given && active == 0 {
		return t, errors.New("active takes at least one step: what is recorded")
	}
	if t.Whole && t.Figures != nil {
		return t, errors.New("whole has no windows of steps")
	}
	return t, nil
}

// torchVariable gives processes what to record; magics/omni_perf/runmarks.py reads it.
const torchVariable = "OMNI_PERF_TORCH"

// variable is the environment's variable for processes that write their traces into a private folder first.
func (t *Torch) variable(private string) (string, error) {
	spool := filepath.Join(private, "torch")
	if err := os.Mkdir(spool, 0o700); err != nil {
		return "", err
	}
	asked, err := json.Marshal(map[string]any{
		"figures": t.Figures, "whole": t.Whole, "words": append([]string{}, t.Words...), "folder": t.Folder, "spool": spool,
	})
	return torchVariable + "=" + string(asked), err
}

// traced are the traces of a finished program.
type traced struct {
	leading addtrace.Traced // those of the process that the report has them of
	files   profdir.Files
}

// tracesOf gathers what the processes have sent, and says what they want the user to know.
func (t *Torch) tracesOf(rec *timeline.Recording, receiver *marks.Receiver, messages io.Writer) (out traced) {
	sent := receiver.FromTorch()
	out.files.Folder = t.Folder
	out.files.Node = nodeNumber()
	out.leading.ByShape = slices.Contains(t.Words, "shapes")
	said := make(map[string]bool)
	lead := 0
	pids := slices.SortedFunc(maps.Keys(sent), func(a, b int) int { return cmp.Or(cmp.Compare(rankOf(sent[a]), rankOf(sent[b])), cmp.Compare(a, b)) })
	for _, pid := range pids {
		of := sent[pid]
		for _, remark := range of.Remarks {
			if remark = words.Clean(remark, 500); !said[remark] {
				said[remark] = true
				fmt.Fprintf(messages, "omni-perf: %s\n", remark)
			}
		}
		if len(of.Traces) == 0 {
			continue
		}
		if lead == 0 || pid == rec.Target.PID {
			lead = pid
		}
		for _, trace := range of.Traces {
			f := profdir.Trace{Path: trace.Path, Cycle: trace.Cycle, PID: pid}
			if trace.Start < trace.End {
				f.Start, f.End = trace.Start-rec.Origin, trace.End-rec.Origin
			}
			out.files.Traces = append(out.files.Traces, f)
		}
	}
	if len(sent) == 0 {
		fmt.Fprintln(messages, "omni-perf: --torch recorded nothing: no process imported torch and then ended as Python ends, which writes the trace (not by a signal or os._exit)")
	}
	if lead == 0 {
		return out
	}
	out.leading.PID = lead
	for _, trace := range sent[lead].Traces {
		out.leading.Files = append(out.leading.Files, addtrace.TraceFile{Path: trace.Path})
	}
	return out
}

func rankOf(of *marks.FromTorch) int {
	if len(of.Traces) == 0 {
		return 1 << 30
	}
	return of.Traces[0].Rank
}

// nodeNumber is this machine's number among those of a training, as its launcher gives it.
func nodeNumber() int {
	for _, name := range []string{"GROUP_RANK", "NODE_RANK"} {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n >= 0 {
			return n
		}
	}
	return 0
}

// maxFolderTime bounds what is written beside the traces.
const maxFolderTime = 10 * time.Minute

// keepTraces writes what --prof_dir asks for, and says so.
func (t Tools) keepTraces(ctx context.Context, r *report.View, files profdir.Files, messages io.Writer) {
	if files.Folder == "" || len(files.Traces) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxFolderTime)
	defer cancel()
	written, err := files.Write(ctx, r, t.Version)
	if err != nil {
		fmt.Fprintf(messages, "omni-perf: not all files could be written into %s: %v\n", files.Folder, err)
	}
	fmt.Fprintf(messages, "omni-perf: wrote %s into %s\n", words.Plural(len(files.Traces)+len(written), "file of torch.profiler", "files of torch.profiler"), files.Folder)
}
