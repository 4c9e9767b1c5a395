package pystack

import (
	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// archCalls are the older system calls that arm64 never had.
var archCalls = map[int]call{
	unix.SYS_POLL: waits(timeline.WaitPoll, "poll"), unix.SYS_SELECT: waits(timeline.WaitPoll, "select"), unix.SYS_EPOLL_WAIT: waits(timeline.WaitPoll, "epoll_wait"),
	unix.SYS_PAUSE: waits(timeline.WaitOther, "pause"), unix.SYS_OPEN: doesIO(timeline.WaitFile, "open"), unix.SYS_UNLINK: doesIO(timeline.WaitFile, "unlink"),
	unix.SYS_STAT: doesIO(timeline.WaitFile, "stat"), unix.SYS_LSTAT: doesIO(timeline.WaitFile, "stat"),
}
