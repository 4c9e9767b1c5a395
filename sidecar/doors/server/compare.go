package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/api"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func (s *kernelSession) Compare(_ context.Context, req *api.CompareRequest) (*api.CompareResponse, error) {
	before, err := s.compared(req.Before)
	if err != nil {
		return nil, err
	}
	after, err := s.compared(req.After)
	if err != nil {
		return nil, err
	}
	defer s.release()
	bundle, headline, err := s.Present.Comparison(before, after, jupyter.Place{Form: req.Form, Theme: req.Theme})
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "The recordings cannot be compared: %v.", err)
	}
	shown, err := inParts(bundle)
	if err != nil {
		return nil, status.Errorf(codes.Internal, "The comparison could not be shown: %v.", err)
	}
	return &api.CompareResponse{Bundle: shown, Headline: headline}, nil
}

// compared reads the recordings of one side.
func (s *kernelSession) compared(side []*api.Compared) ([]*report.View, error) {
	views := make([]*report.View, 0, len(side))
	for _, c := range side {
		packed, name := c.ReportGzip, c.Name
		if len(packed) == 0 {
			var ok bool
			if packed, ok = s.shelf.Report(c.ReportId); !ok {
				return nil, status.Error(codes.NotFound, missing(c.ReportId))
			}
		}
		if name == "" {
			name = fmt.Sprintf("the report %s", c.ReportId)
		}
		v, err := report.Read(packed)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s cannot be compared: %v.", name, err)
		}
		views = append(views, v)
	}
	return views, nil
}
