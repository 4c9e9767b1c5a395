package program

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/omni-perf/omni-perf/jupyter"
)

const (
	// restartWait is how long the next process of a kernel is waited for. Jupyter's server
	// looks every 3 s whether a kernel has died by itself (jupyter_client.restarter).
	restartWait = 30 * time.Second
	// fileWait is how long the connection file may be missing meanwhile: a restart with other
	// ports deletes it and writes another.
	fileWait  = 2 * time.Second
	lookEvery = 100 * time.Millisecond
)

// nextProcess is the process that a restart gave a kernel.
type nextProcess struct {
	pid  int
	file jupyter.ConnectionFile // as it is now
}

// awaitRestart waits for the next process of a kernel whose last one has ended. There is none
// if the connection file is gone, as after a shutdown, if nobody starts one, or ctx ends.
//
// The file is read anew each time: a restart may write another, with other ports. It counts
// only as its first owner's, whose processes alone KernelProcess finds for it.
func awaitRestart(ctx context.Context, file jupyter.ConnectionFile) (next nextProcess, ok bool) {
	ctx, stop := context.WithTimeout(ctx, restartWait)
	defer stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	seen := time.Now()
	for {
		now, err := jupyter.ReadConnection(file.Path)
		if !errors.Is(err, fs.ErrNotExist) {
			seen = time.Now()
		} else if time.Since(seen) > fileWait {
			return next, false
		}
		if err == nil && sameOwner(now, file) {
			if pid, err := KernelProcess(now); err == nil {
				return nextProcess{pid, now}, true
			}
		}
		select {
		case <-ctx.Done():
			return next, false
		case <-look.C:
		}
	}
}

func sameOwner(a, b jupyter.ConnectionFile) bool {
	one, ok1 := ownerOf(a)
	other, ok2 := ownerOf(b)
	return ok1 && ok2 && one == other
}
