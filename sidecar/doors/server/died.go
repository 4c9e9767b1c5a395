package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/proctree"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/wording"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Exit is how a kernel's process ended.
type Exit struct {
	Code   *int // or 128 and the signal; nil: not known
	Signal int  // 0: none, or not known
}

// exit reads how the kernel has ended: at once, before whoever started it waits for it.
func (k *kernel) exit() (e Exit) {
	e.Code, e.Signal = proctree.Ended(procfs.New("/proc"), k.pid, k.start, k.fd)
	return e
}

// lastReport is what is kept of a kernel that died in a cell, for the next one of the same notebook.
// magics/omni_perf/lastreport.py reads it.
type lastReport struct {
	Sentence   string             `json:"sentence"`
	Text       string             `json:"text"` // the sentence, and the last stacks
	Cell       int                `json:"cell"` // its execution count
	Headline   string             `json:"headline"`
	Exit       *int               `json:"exit"`
	Signal     int                `json:"signal"`
	Stacks     []report.LastStack `json:"stacks"`
	ReportGzip []byte             `json:"report_gzip"`
}

// KernelEnded ends what is recorded when the kernel's process has ended, and keeps a last report of it, unless the
// kernel was asked to end.
func (s *kernelSession) KernelEnded(exit Exit, folder *Folder) {
	at := timeline.Monotonic()
	s.mu.Lock()
	asked := s.output != nil && s.output.Shutdown()
	notebook, id, cell, before := s.notebook, "", (*cellState)(nil), host.Memory{}
	for other, c := range s.cells {
		if !c.over && (cell == nil || c.started < cell.started) { // the outermost
			id, cell, before = other, c, c.memory
		}
	}
	s.mu.Unlock()
	if asked || notebook == "" || cell == nil {
		return
	}
	err := guard(func() error {
		last, err := s.lastReport(id, cell, before, at, exit)
		if err != nil {
			return err
		}
		return keepLast(filepath.Dir(folder.Path), notebook, last)
	})
	if err != nil {
		s.Log.Error("no last report", "error", err)
	}
}

func (s *kernelSession) lastReport(id string, cell *cellState, before host.Memory, at int64, exit Exit) (*lastReport, error) {
	rec, err := s.Recorder.End(id, recorder.Ending{At: at, Outcome: "kernel died"})
	if err != nil {
		return nil, err
	}
	r, err := s.Analyse(rec)
	if err != nil {
		return nil, err
	}
	packed, err := report.Pack(r.Document)
	if err != nil {
		return nil, err
	}
	memory := s.memory.Now()
	place, ago := r.DiedIn(exit.Signal)
	d := wording.Died{
		Exit: exit.Code, Signal: exit.Signal, Cell: int(cell.begin.ExecutionCount), IntoS: time.Duration(at - cell.started).Seconds(), Place: place,
		SeenS: rec.TargetSeenBefore().Seconds() + ago.Seconds(), Resident: r.LastResident(), Group: memory.Group, GroupLimit: memory.GroupLimit, Machine: memory.Machine, Available: memory.Available,
	}
	d.GPU, d.Xid = r.LastXid()
	if before.Machine > 0 { // else it ended before that was known
		d.GroupKills, d.Kills = memory.GroupKills-before.GroupKills, memory.Kills-before.Kills
	}
	l := &lastReport{
		Sentence: d.Sentence(), Cell: d.Cell, Headline: r.Headline.Text, Exit: exit.Code, Signal: exit.Signal, Stacks: r.LastStacks(), ReportGzip: packed,
	}
	l.Text = lastText(d, l.Stacks)
	return l, nil
}

// lastText is what is shown of a kernel that died, above the chart of its cell.
func lastText(d wording.Died, stacks []report.LastStack) string {
	var b strings.Builder
	b.WriteString(d.Sentence() + "\n")
	if d.Group > 0 && d.GroupLimit > 0 {
		fmt.Fprintf(&b, "When it had ended, its control group used %s of %s.\n", words.Quantity(float64(d.Group), "B"), words.Quantity(float64(d.GroupLimit), "B"))
	}
	if d.Machine > 0 {
		fmt.Fprintf(&b, "When it had ended, %s of the machine's %s were free to be used.\n", words.Quantity(float64(d.Available), "B"), words.Quantity(float64(d.Machine), "B"))
	}
	for _, s := range stacks {
		b.WriteString("\n" + s.String())
	}
	return b.String()
}

// noteMemory reads what is compared with what there is when the kernel has died.
func (s *kernelSession) noteMemory(c *cellState) {
	memory := s.memory.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c.memory = memory
}
