package server

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/show/glance"
	"github.com/omni-perf/omni-perf/sidecar/show/output"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// Overview shows the cells of the session in a table, or writes a page of them.
func (s *kernelSession) Overview(_ context.Context, req *api.OverviewRequest) (*api.OverviewResponse, error) {
	entries := s.shelf.Entries()
	if len(entries) == 0 {
		return &api.OverviewResponse{}, nil
	}
	n := glance.Notebook{Name: req.Name, Cells: rows(entries)}
	if req.File == "" {
		b := jupyter.NewBundle(nil, []byte(n.Text()), "")
		if req.Form != "terminal" {
			b = jupyter.NewBundle(n.HTML(), []byte(n.Text()), "")
		}
		bundle, err := inParts(b)
		if err != nil {
			return nil, status.Errorf(codes.Internal, "The table could not be shown: %v.", err)
		}
		return &api.OverviewResponse{Bundle: bundle}, nil
	}
	if !filepath.IsAbs(req.File) {
		return nil, status.Errorf(codes.InvalidArgument, "%s is no absolute path.", req.File)
	}
	defer s.release()
	for i, e := range entries {
		n.Cells[i].Chart, n.Cells[i].Missing = s.picture(e)
	}
	if err := output.WriteBytes(req.File, n.Page()); err != nil {
		return nil, status.Error(codes.FailedPrecondition, Sentence(err))
	}
	return &api.OverviewResponse{Written: req.File}, nil
}

func rows(entries []entry) (cells []glance.Cell) {
	for _, e := range entries {
		cells = append(cells, e.row())
	}
	return cells
}

func (e *entry) row() glance.Cell {
	return glance.Cell{
		Number: e.ExecutionCount, Name: e.Name, Code: e.FirstLine, Lines: e.Lines, Outcome: e.Outcome, Headline: e.Headline,
		Duration: time.Duration(e.DurationS * float64(time.Second)), Figures: e.Figures, Output: e.Output,
	}
}

// picture is what a page shows of a cell, or why there is nothing.
func (s *kernelSession) picture(e entry) (svg []byte, missing string) {
	packed, ok := s.shelf.Report(e.ReportID)
	switch {
	case e.Short:
		return nil, "the cell was below the threshold of %omni_perf on"
	case e.ReportID == "" && e.Headline == "":
		return nil, "its report could not be made"
	case e.ReportID == "" || !ok:
		return nil, "the report has made room for later ones"
	}
	var c glance.Cell
	err := guard(func() error {
		r, err := report.Read(packed)
		if err != nil {
			return err
		}
		return c.Draw(r)
	})
	if err != nil {
		s.Log.Error("no picture", "error", err)
		return nil, "it could not be drawn"
	}
	return c.Chart, c.Missing
}
