package server

import (
	"context"

	"github.com/omni-perf/omni-perf/jupyter"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// FollowKernel observes a kernel's IOPub for what its cells print.
func FollowKernel(connectionFile string) (Output, error) {
	connection, err := jupyter.ReadConnection(connectionFile)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	observer, err := jupyter.Observe(ctx, connection.Connection)
	if err != nil {
		cancel()
		return nil, err
	}
	return iopub{observer, cancel}, nil
}

type iopub struct {
	observer *jupyter.Observer
	cancel   context.CancelFunc
}

func (i iopub) Close() { i.cancel() }

func (i iopub) Shutdown() bool { return i.observer.Shutdown() }

func (i iopub) Output(parentMsgID string) (timeline.Output, bool) {
	out, ok := i.observer.Output(parentMsgID)
	return timeline.Output(out), ok
}
