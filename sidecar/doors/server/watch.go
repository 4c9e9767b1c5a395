package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
)

// watchEvery is how often the watch looks at what no pidfd shows.
const watchEvery = 500 * time.Millisecond

// kernel is the process the sidecar lives and dies with.
type kernel struct {
	pid   int
	start uint64 // field 22 of its stat; distinguishes it from a later process of that pid
	fd    int    // pidfd; -1 where there are none (before Linux 5.3, some sandboxes)
}

// openKernel takes hold of the process. Its error is a sentence.
func openKernel(pid int, start uint64) (*kernel, error) {
	k := &kernel{pid: pid, start: start, fd: -1}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		k.fd = fd
	} else if errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("there is no process %d for the sidecar to serve", pid)
	}
	now, alive := procfs.Start(pid)
	if !alive || (start != 0 && now != start) {
		k.close()
		return nil, fmt.Errorf("the process %d that the sidecar was to serve has ended", pid)
	}
	k.start = now
	return k, nil
}

func (k *kernel) close() {
	if k.fd >= 0 {
		unix.Close(k.fd)
	}
}

// wait returns true when the kernel has ended, false when ctx has, or lost says
// that nobody can reach us any more.
func (k *kernel) wait(ctx context.Context, lost func() bool) bool {
	for ctx.Err() == nil {
		if k.fd >= 0 {
			fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(fds, int(watchEvery/time.Millisecond)); err == nil && n > 0 {
				return true
			}
		} else {
			time.Sleep(watchEvery)
			if start, alive := procfs.Start(k.pid); !alive || start != k.start {
				return true
			}
		}
		if lost() {
			return false
		}
	}
	return false
}
