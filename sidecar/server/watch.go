package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is how often the watch looks at what no pidfd tells.
const watchEvery = 500 * time.Millisecond

// kernel is the process the sidecar lives and dies with.
type kernel struct {
	pid   int
	start uint64 // field 22 of its stat; tells it from a later process of that pid
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
	now, alive := processStart(pid)
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
			if start, alive := processStart(k.pid); !alive || start != k.start {
				return true
			}
		}
		if lost() {
			return false
		}
	}
	return false
}

// processStart reads when the process started, in clock ticks since boot. A
// zombie has ended.
func processStart(pid int) (start uint64, alive bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	return parseStart22(text)
}

// parseStart22 finds fields 3 (state) and 22 (starttime) of a stat line. The name
// in field 2 may hold spaces and parentheses; the last parenthesis ends it.
func parseStart22(stat []byte) (start uint64, alive bool) {
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, false
	}
	fields := bytes.Fields(stat[i+1:])
	if len(fields) < 20 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, false
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return start, err == nil
}
