package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/doors/profdir"
	"github.com/omni-perf/omni-perf/sidecar/doors/profiler"
	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Presenter turns a report into what people see.
type Presenter interface {
	Bundle(r *report.View, at jupyter.Place) (jupyter.Bundle, error)
	// Live is what a cell in progress shows.
	Live(now *live.Now, at jupyter.Place) jupyter.Bundle
	// Draw makes a file of the format "svg", "html" or "text".
	Draw(r *report.View, format string) (content []byte, mediaType string, err error)
	// Comparison says what differs between two sides, and its headline.
	Comparison(before, after []*report.View, at jupyter.Place) (bundle jupyter.Bundle, headline string, err error)
}

const releaseAfter = 300 * time.Millisecond

func (s *kernelSession) End(_ context.Context, req *api.EndRequest) (*api.EndResponse, error) {
	s.mu.Lock()
	cell, output := s.cells[req.CellId], s.output
	delete(s.cells, req.CellId)
	delete(s.announced, req.CellId)
	over := cell != nil && cell.over
	if cell == nil {
		s.given = append(s.given, req.CellId)
		s.given = s.given[max(0, len(s.given)-maxGiven):]
	}
	s.mu.Unlock()
	if cell == nil {
		return nil, callError(fmt.Errorf("%w: %q", recorder.ErrUnknown, req.CellId))
	}
	ended := req.EndedNs
	if now := timeline.Monotonic(); ended <= 0 || ended > now {
		ended = now
	}
	began := cell.started
	if req.BeganNs > 0 {
		began = min(began, req.BeganNs)
	}
	length := time.Duration(max(ended-began, 0))
	row := cell.entry(length, req.Outcome)
	if over || cell.begin.Automatic && length < time.Duration(cell.begin.ThresholdNs) {
		row.Short = true
		if before, after := cell.begin.ResidentBytes, req.ResidentBytes; before > 0 && after > 0 {
			kept := after - before
			row.Figures.Kept = &kept
		}
		s.shelf.Add(row, nil)
		if over {
			return &api.EndResponse{}, nil
		}
		return &api.EndResponse{}, callErrorOrNil(s.Recorder.Discard(req.CellId))
	}

	ending := recorder.Ending{At: ended, Outcome: req.Outcome, Marks: marks(req.Marks), Sources: sources(req.Sources), Loaded: loaded(req.Loaded)}
	if output != nil {
		if seen, ok := output.Output(cell.begin.ParentMsgId); ok {
			ending.Output = &seen
		}
	}
	failures := s.failures(req.OutOfMemory)
	for i := range failures {
		ending.Files = append(ending.Files, failures[i].Files()...)
	}
	if recorded := allocations(req.Allocations); recorded != nil {
		ending.Files = append(ending.Files, recorded.Files()...)
	}
	rec, err := s.Recorder.End(req.CellId, ending)
	if err != nil {
		return nil, callError(err)
	}
	cell.late = time.Duration(cell.started - began)
	profiler.MarkLate(rec, cell.late, length)
	if before, after := cell.begin.ResidentBytes, req.ResidentBytes; before > 0 && after > 0 && len(rec.Processes) > 0 {
		rec.Processes[0].Memory.AtBegin, rec.Processes[0].Memory.AtEnd = before, after
	}
	return s.finish(rec, cell, row, req, failures)
}

// finish makes report, bundle and record of a cell's recording.
func (s *kernelSession) finish(rec *timeline.Recording, cell *cellState, row entry, req *api.EndRequest, failures []report.Failure) (*api.EndResponse, error) {
	r, err := s.analyse(rec, req, failures)
	if err != nil {
		return nil, s.noChart(row, fmt.Errorf("a bug of omni_perf: %w", err))
	}
	// Where an exception came out of the cell the report ends there; the recorder has the time of printing it, too.
	// The report ends where an exception came out of the cell, the recorder's length includes its printing.
	row.DurationS = min(row.DurationS, (time.Duration(r.DurationNS) + cell.late).Seconds())
	resp := &api.EndResponse{Headline: r.Headline.Text}
	if folder := req.Torch.GetFolder(); filepath.IsAbs(folder) {
		resp.Written, resp.Lines = s.traceFiles(r, req.Torch)
	}
	if req.Quiet || s.Present == nil { // the chart says the same
		resp.Lines = append(resp.Lines, remarks(r, cell.begin)...)
	}
	var packed []byte
	var work errgroup.Group
	work.Go(func() error {
		return guard(func() (err error) {
			packed, err = report.Pack(r.Document)
			return err
		})
	})
	if !req.Quiet && s.Present != nil {
		work.Go(func() error {
			return guard(func() (err error) {
				resp.Bundle, row.Output, err = s.outputOf(r, jupyter.Place{Form: req.Form, Theme: req.Theme, Folded: cell.begin.Automatic})
				return err
			})
		})
	}
	if err := work.Wait(); err != nil {
		return nil, s.noChart(row, err)
	}
	s.mu.Lock()
	s.reports++
	resp.ReportId = strconv.Itoa(s.reports)
	s.mu.Unlock()
	resp.ReportGzip = packed
	s.release()
	row.ReportID, row.Headline, row.Figures = resp.ReportId, r.Headline.Text, glance.FiguresOf(r)
	s.shelf.Add(row, packed)
	return resp, nil
}

func (s *kernelSession) analyse(rec *timeline.Recording, req *api.EndRequest, failures []report.Failure) (*report.View, error) {
	if s.AnalyseTraced == nil {
		return s.Analyse(rec)
	}
	traced := addtrace.Traced{ByShape: req.Torch.GetByShape(), KernelWait: time.Duration(req.KernelWaitNs), OutOfMemory: failures, TorchMemory: torchMemory(req.TorchMemory), Allocations: allocations(req.Allocations)}
	recorded := req.Torch.GetRecorded()
	for i, path := range req.Torch.GetTraces() {
		f := addtrace.TraceFile{Path: path}
		if i < len(recorded) {
			f.Began, f.Ended = recorded[i].GetBeganNs(), recorded[i].GetEndedNs()
		}
		traced.Files = append(traced.Files, f)
	}
	return s.AnalyseTraced(rec, traced)
}

// noChart keeps what is known of a cell, and says why there is no more.
func (s *kernelSession) noChart(row entry, err error) error {
	s.shelf.Add(row, nil)
	s.Log.Error("no chart", "error", err)
	reason, _, _ := strings.Cut(err.Error(), "\n")
	return status.Errorf(codes.Internal, "The cell was recorded but its chart could not be made: %s.", reason)
}

// maxFolderTime is how long the files beside the traces are written, for which somebody waits.
const maxFolderTime = 2 * time.Minute

// traceFiles writes what --prof_dir asks for, and returns the files and what could not be written.
func (s *kernelSession) traceFiles(r *report.View, asked *api.Torch) (written, lines []string) {
	files := profdir.Files{Folder: asked.Folder, Node: int(max(asked.Node, 0))}
	for i, path := range asked.Traces {
		t := profdir.Trace{Path: path}
		if i < len(asked.Recorded) {
			t.Cycle = asked.Recorded[i].GetCycle()
		}
		files.Traces = append(files.Traces, t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxFolderTime)
	defer cancel()
	written, err := files.Write(ctx, r, s.Version)
	if err != nil {
		lines = append(lines, fmt.Sprintf("Not all files could be written into %s: %v.", words.Clean(asked.Folder, words.MaxName), err))
	}
	return written, lines
}

// guard makes an error of a panic in a goroutine of a call, where logCalls does
// not reach.
func guard(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a bug of omni_perf: %v\n%s", p, debug.Stack())
		}
	}()
	return work()
}

// release gives the memory of making a report back to the system, soon but not on
// the cell's way.
func (s *kernelSession) release() {
	if s.releasing.Swap(true) {
		return
	}
	time.AfterFunc(releaseAfter, func() {
		s.releasing.Store(false)
		giveBack()
	})
}

// giveBack collects twice: what lies in a sync.Pool, as the buffer of a large
// document does, survives once.
func giveBack() {
	runtime.GC()
	debug.FreeOSMemory()
}

// bundle is a report as a display shows it, with its figures as data.
func (s *kernelSession) bundle(r *report.View, at jupyter.Place) (jupyter.Bundle, error) {
	b, err := s.Present.Bundle(r, at)
	if err != nil {
		return b, err
	}
	b.Data[displayType] = displayData(r)
	return b, nil
}

// outputOf is the bundle of a cell, and the id of an element in it that a link may lead to; empty where it
// has no HTML.
func (s *kernelSession) outputOf(r *report.View, at jupyter.Place) (bundle *api.Bundle, id string, err error) {
	b, err := s.bundle(r, at)
	if err != nil {
		return nil, "", err
	}
	if html, ok := b.Data["text/html"].(string); ok {
		id = fmt.Sprintf("omni-perf-%016x", inhtml.Identity(r))
		b.Data["text/html"] = `<a id="` + id + `"></a>` + html
	}
	bundle, err = inParts(b)
	return bundle, id, err
}

func inParts(b jupyter.Bundle) (*api.Bundle, error) {
	data, metadata, transient, err := b.Parts()
	if err != nil {
		return nil, err
	}
	return &api.Bundle{DataJson: data, MetadataJson: metadata, TransientJson: transient}, nil
}

// remarks are what the user reads even where no chart is shown: that a cell was too short, but not
// where something else is to be said of it, as how long its traceback was formatted.
func remarks(r *report.View, begin *api.BeginRequest) []string {
	if r.Headline.Kind == report.HeadlineTooFew && len(r.Headline.Limits) == 0 && !begin.Automatic {
		return []string{fmt.Sprintf("The cell ran %s. %s", words.Seconds(report.Seconds(r.DurationNS)), r.Headline.Text)}
	}
	return nil
}

func (c *cellState) entry(length time.Duration, outcome string) entry {
	return entry{
		ExecutionCount: int(c.begin.ExecutionCount),
		Name:           clipLine(c.begin.Name),
		DurationS:      length.Seconds(),
		Outcome:        outcome,
		FirstLine:      clipLine(glance.FirstLine(c.begin.Text)),
		Lines:          glance.Lines(c.begin.Text),
		StartedAt:      time.Now().Add(-length).Format(time.RFC3339),
	}
}

func (s *kernelSession) Report(_ context.Context, req *api.ReportRequest) (*api.ReportResponse, error) {
	packed := req.ReportGzip
	plain := req.Format == "json" || req.Format == ""
	if len(packed) == 0 {
		var ok bool
		if packed, ok = s.shelf.Report(req.ReportId); !ok {
			return nil, status.Error(codes.NotFound, missing(req.ReportId))
		}
		if plain {
			text, err := report.Unpack(packed)
			if err != nil {
				return nil, status.Errorf(codes.Internal, "The report cannot be unpacked: %v.", err)
			}
			return &api.ReportResponse{Content: text, MediaType: "application/json"}, nil
		}
	}
	r, err := report.Read(packed)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "The report cannot be read: %v.", err)
	}
	if plain { // what was read of it, not what was sent
		text, err := json.Marshal(r.Document)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "The report cannot be written: %v.", err)
		}
		return &api.ReportResponse{Content: text, MediaType: "application/json"}, nil
	}
	if req.Format == "bundle" {
		b, err := s.bundle(r, jupyter.Place{Form: "notebook", Whole: true})
		if err != nil {
			return nil, status.Errorf(codes.Internal, "The chart could not be made: %v.", err)
		}
		parts, err := inParts(b)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "The chart could not be made: %v.", err)
		}
		content, err := json.Marshal(map[string]json.RawMessage{
			"data": json.RawMessage(parts.DataJson), "metadata": json.RawMessage(parts.MetadataJson), "transient": json.RawMessage(parts.TransientJson),
		})
		return &api.ReportResponse{Content: content, MediaType: "application/json"}, err
	}
	content, mediaType, err := s.Present.Draw(r, req.Format)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "The report could not be written as %q: %v.", req.Format, err)
	}
	return &api.ReportResponse{Content: content, MediaType: mediaType}, nil
}

func missing(id string) string {
	if id == "" {
		return "There is no report yet: run a cell with %%omni_perf first."
	}
	return fmt.Sprintf("There is no report %s any more: the last %d are kept, of short cells fewer. %%omni_perf list shows which.", id, maxReports)
}

func (s *kernelSession) List(context.Context, *api.ListRequest) (*api.ListResponse, error) {
	resp := &api.ListResponse{}
	entries := s.shelf.Entries()
	titles := glance.Titles(rows(entries))
	for i, e := range entries {
		resp.Entries = append(resp.Entries, &api.Entry{
			ReportId: e.ReportID, ExecutionCount: int32(e.ExecutionCount), Name: e.Name, DurationS: e.DurationS,
			Outcome: e.Outcome, Headline: e.Headline, FirstLine: titles[i], StartedAt: e.StartedAt,
		})
	}
	return resp, nil
}

func marks(in []*api.Mark) []recorder.Mark {
	out := make([]recorder.Mark, 0, len(in))
	for _, m := range in {
		mark := recorder.Mark{Kind: m.Kind, Name: m.Name, Start: m.StartNs, End: m.EndNs}
		switch m.Kind {
		case "step":
			mark.Source = timeline.StepMarked
			var epoch *int
			if m.Epoch != nil {
				at := int(*m.Epoch)
				epoch = &at
			}
			mark.Batch = timeline.NewBatch(m.Samples, m.Tokens, epoch)
		case "optimizer-step", "optimizer-anew":
			mark.Kind, mark.Source, mark.Anew = "step", timeline.StepOptimizer, m.Kind == "optimizer-anew"
			mark.Optimizer = m.OptimizerNs
		}
		out = append(out, mark)
	}
	return out
}

func callErrorOrNil(err error) error {
	if err == nil {
		return nil
	}
	return callError(err)
}

// ownMemory is what is resident of the sidecar itself, in bytes; 0 where it cannot be read.
func ownMemory() int64 {
	bytes, _ := procfs.Resident(os.Getpid())
	return bytes
}
