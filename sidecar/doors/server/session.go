package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/measure/host"
	"github.com/omni-perf/omni-perf/sidecar/measure/recorder"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/traces/addtrace"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Tools are what a session works with, made where the real ones are known.
type Tools struct {
	Version  string
	Recorder *recorder.Recorder
	Analyse  func(*timeline.Recording) (*report.View, error)
	// AnalyseTraced does so for a recording during which torch.profiler may have written traces; nil: they are not read.
	AnalyseTraced func(*timeline.Recording, addtrace.Traced) (*report.View, error)
	Present       Presenter
	Doctor        func(ctx context.Context, interpreter string) []*api.Check
	// GPUs names the devices, or says why there are none.
	GPUs func() (names []string, reason string)
	// Follow begins to observe the kernel's output; nil where that is not done.
	Follow func(connectionFile string) (Output, error)
	// Follower makes who looks at one recording in progress; nil: cells are not shown live.
	Follower func() *live.Follower
	Log      *slog.Logger
}

// Output returns what the cell of an execute_request has printed so far.
type Output interface {
	Output(parentMsgID string) (timeline.Output, bool)
	Shutdown() bool // whether the kernel has announced that it was asked to end
	Close()
}

// What the extension is to do about stacks, as the protocol spells it.
const (
	outsideOK         = "ok"
	outsidePermission = "permission"
	outsideFallback   = "fallback"
)

// kernelSession answers one kernel's calls.
type kernelSession struct {
	api.UnimplementedOmniPerfServer
	Tools
	kernelPID int
	logFile   string
	folder    string
	notes     []string
	started   time.Time
	shelf     shelf
	releasing atomic.Bool

	memory *host.MemoryWatch

	mu       sync.Mutex
	notebook string // of the kernel, as the extension distinguishes them; empty: nothing is kept of it
	greeted  bool
	asked    bool // for PR_SET_PTRACER
	reason   error
	output   Output // nil where IOPub is not observed
	cells    map[string]*cellState
	// announced are cells whose Begin is still to come.
	announced map[string]*announced
	// given holds the ids of cells that were ended before they began: the extension
	// gave up waiting, and its calls arrived in another order.
	given   []string
	reports int // made so far; names the next
}

// cellState is what the session remembers of a cell from Begin to End.
type cellState struct {
	begin   *api.BeginRequest
	memory  host.Memory   // when it began
	started int64         // CLOCK_MONOTONIC
	late    time.Duration // after its cell; known at its end
	over    bool          // it was announced to be: nothing of it is recorded any more
	live    liveCell
}

// NewSession makes the session of one kernel.
func NewSession(start Start, tools Tools) Session {
	tools.Log = start.Log
	return &kernelSession{
		Tools: tools, kernelPID: start.KernelPID, logFile: start.LogFile, folder: start.Folder, notes: start.Notes,
		started: time.Now(), cells: make(map[string]*cellState), announced: make(map[string]*announced), memory: host.WatchMemory(start.KernelPID),
	}
}

func (s *kernelSession) Close() {
	s.Recorder.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.output != nil {
		s.output.Close()
		s.output = nil
	}
}

func (s *kernelSession) Hello(_ context.Context, req *api.HelloRequest) (*api.HelloResponse, error) {
	resp := &api.HelloResponse{Version: s.Version, Api: api.Number, Pid: int32(os.Getpid())}
	if req.Api != api.Number {
		resp.Refusal = fmt.Sprintf("The omni_perf extension %s and its sidecar %s do not fit together (protocol %d and %d): reinstall omni_perf and restart the kernel.", req.Version, s.Version, req.Api, api.Number)
		return resp, nil
	}
	if int(req.Pid) != s.kernelPID {
		return nil, status.Errorf(codes.PermissionDenied, "This sidecar serves process %d, not %d: a forked process starts its own.", s.kernelPID, req.Pid)
	}
	if req.Version != s.Version {
		resp.Notes = append(resp.Notes, fmt.Sprintf("The omni_perf extension is version %s, its sidecar %s; they work together, but reinstall omni_perf to have one of each.", req.Version, s.Version))
	}
	s.Recorder.Describe(func(t *timeline.Target) {
		t.PythonVersion, t.Interpreter = req.PythonVersion, req.Interpreter
	})
	if i := req.Installation; i != nil {
		s.Recorder.Installed(timeline.Installation{Prefixes: i.Prefixes, Standard: i.Standard, Extension: i.Extension})
	}
	resp.Outside, resp.Reason = s.outside(s.Recorder.Attach())
	if note := s.follow(req.ConnectionFile); note != "" {
		resp.Notes = append(resp.Notes, note)
	}
	s.mu.Lock()
	s.notebook = req.Notebook
	resp.Notes, s.notes = append(resp.Notes, s.notes...), nil // reported once
	s.mu.Unlock()
	return resp, nil
}

// outside says what is to be done about a refusal. A permission that is still
// missing after it was asked for will not come.
func (s *kernelSession) outside(err error) (outside, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = err
	switch {
	case err == nil:
		return outsideOK, ""
	case errors.Is(err, fs.ErrPermission) && !s.asked:
		s.asked = true
		return outsidePermission, Sentence(err)
	default:
		return outsideFallback, Sentence(err)
	}
}

// follow begins to observe IOPub, once; what cannot be done is a note.
func (s *kernelSession) follow(connectionFile string) (note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.greeted
	s.greeted = true
	if !first || connectionFile == "" || s.Follow == nil {
		return ""
	}
	output, err := s.Follow(connectionFile)
	if err != nil {
		s.Log.Warn("IOPub is not observed", "error", err)
		return Sentence(fmt.Errorf("what cells print is not counted: %w", err))
	}
	s.output = output
	return ""
}

func (s *kernelSession) Begin(ctx context.Context, req *api.BeginRequest) (*api.BeginResponse, error) {
	if ctx.Err() != nil || s.givenUp(req.CellId) {
		return nil, status.Error(codes.Canceled, "The recording was given up before it began.")
	}
	if resp := s.begun(req); resp != nil {
		return resp, nil
	}
	return s.begin(ctx, req)
}

func (s *kernelSession) begin(ctx context.Context, req *api.BeginRequest) (*api.BeginResponse, error) {
	// The cell's code runs when this call has been answered: the time that the
	// extension asked at, req.StartedNs, holds the call itself, too.
	started := timeline.Monotonic()
	children, err := recorder.ParseChildren(req.Children)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	refusal, err := s.Recorder.Begin(recorder.Spec{
		ID:             req.CellId,
		Started:        started,
		ThreadID:       int(req.ThreadId),
		Coroutine:      uint64(req.Coroutine),
		OwnThreads:     numbers(req.OwnThreads),
		Interval:       time.Duration(req.IntervalNs),
		FigureInterval: time.Duration(req.SystemIntervalNs),
		Children:       children,
		Cell:           &timeline.Cell{ExecutionCount: int(req.ExecutionCount), File: req.File, Text: req.Text, Name: req.Name},
		Sources:        sources(req.Sources),
		Rings:          s.folder,
	})
	if err != nil {
		return nil, callError(err)
	}
	cell := &cellState{begin: req, started: started}
	s.mu.Lock()
	s.cells[req.CellId] = cell
	s.mu.Unlock()
	go s.noteMemory(cell)      // the cell does not wait for it
	if s.givenUp(req.CellId) { // while it began
		_, _ = s.End(ctx, &api.EndRequest{CellId: req.CellId, Quiet: true})
	}
	outside, reason := s.outside(refusal)
	return &api.BeginResponse{Outside: outside, Reason: reason}, nil
}

// maxGiven bounds what is remembered of cells that were given up.
const maxGiven = 64

func (s *kernelSession) givenUp(cellID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.given, cellID)
}

func (s *kernelSession) Push(_ context.Context, req *api.PushRequest) (*api.PushResponse, error) {
	s.Recorder.Push(samples(req))
	return &api.PushResponse{}, nil
}

func (s *kernelSession) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	resp := &api.StatusResponse{
		Version: s.Version, Pid: int32(os.Getpid()), UptimeS: time.Since(s.started).Seconds(),
		RssBytes: ownMemory(), Recording: s.Recorder.Recording(), Log: s.logFile, Outside: outsideOK,
	}
	reports, size := s.shelf.Size()
	resp.Reports, resp.ReportBytes = int32(reports), int64(size)
	if s.GPUs != nil {
		resp.Gpus, resp.GpuReason = s.GPUs()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil {
		resp.Outside, resp.Reason = outsideFallback, Sentence(s.reason)
	}
	return resp, nil
}

func (s *kernelSession) Doctor(ctx context.Context, _ *api.DoctorRequest) (*api.DoctorResponse, error) {
	var interpreter string
	s.Recorder.Describe(func(t *timeline.Target) { interpreter = t.Interpreter })
	return &api.DoctorResponse{Checks: s.Tools.Doctor(ctx, interpreter)}, nil
}

// callError gives the recorder's errors their code.
func callError(err error) error {
	switch {
	case errors.Is(err, recorder.ErrUnknown):
		return status.Error(codes.NotFound, Sentence(err))
	case errors.Is(err, recorder.ErrRunning):
		return status.Error(codes.AlreadyExists, Sentence(err))
	case errors.Is(err, recorder.ErrClosed):
		return status.Error(codes.Unavailable, Sentence(err))
	}
	return status.Error(codes.Internal, Sentence(err))
}

func numbers(in []int32) []int {
	out := make([]int, len(in))
	for i, n := range in {
		out[i] = int(n)
	}
	return out
}

func sources(in []*api.CellSource) []timeline.Source {
	out := make([]timeline.Source, 0, len(in))
	for _, s := range in {
		source := timeline.Source{File: s.File, ExecutionCount: int(s.ExecutionCount), Text: s.Text, Nested: s.Nested}
		for _, line := range s.Lines {
			source.Lines = append(source.Lines, int(line))
		}
		out = append(out, source)
	}
	return out
}

func loaded(in []*api.Loaded) map[string]time.Time {
	out := make(map[string]time.Time, len(in))
	for _, l := range in {
		out[l.File] = time.Time{}
		if l.ModifiedNs != 0 {
			out[l.File] = time.Unix(0, l.ModifiedNs)
		}
	}
	return out
}

// samples converts the protocol's columns to ticks.
func samples(req *api.PushRequest) recorder.Samples {
	out := recorder.Samples{
		Frames: make(map[uint32]timeline.Frame, len(req.Frames)),
		Stacks: make(map[uint32][]uint32, len(req.Stacks)),
		CPU:    timeline.Nanos(req.CpuNs),
	}
	for _, f := range req.Frames {
		out.Frames[f.Id] = timeline.Frame{
			Function: f.Function, File: f.File, Line: int(f.Line), FirstLine: int(f.FirstLine), Suspended: f.Suspended, Elided: max(int(f.Elided), 0)}
	}
	for _, st := range req.Stacks {
		out.Stacks[st.Id] = st.Frames
	}
	for _, t := range req.Threads {
		out.Threads = append(out.Threads, recorder.PushedThread{ID: int(t.ThreadId), Name: t.Name, Main: t.Main})
	}
	for _, sample := range req.Samples {
		if n := len(out.Ticks); n == 0 || out.Ticks[n-1].At != sample.AtNs {
			out.Ticks = append(out.Ticks, recorder.Tick{At: sample.AtNs, Stacks: make(map[int]uint32)})
		}
		out.Ticks[len(out.Ticks)-1].Stacks[int(sample.ThreadId)] = sample.Stack
	}
	return out
}

func clipLine(line string) string {
	const most = 120 // runes
	for i := range line {
		if i >= most*4 {
			return strings.ToValidUTF8(line[:i], "") + "…"
		}
	}
	runes := []rune(line)
	if len(runes) <= most {
		return line
	}
	return string(runes[:most]) + "…"
}
