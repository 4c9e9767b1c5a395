package pystack

import "golang.org/x/sys/unix"

// archCalls are the older system calls that arm64 never had.
var archCalls = map[int]call{
	unix.SYS_POLL: waits("poll"), unix.SYS_SELECT: waits("select"), unix.SYS_EPOLL_WAIT: waits("epoll_wait"),
	unix.SYS_PAUSE: waits("pause"), unix.SYS_OPEN: doesIO("open"), unix.SYS_UNLINK: doesIO("unlink"),
	unix.SYS_STAT: doesIO("stat"), unix.SYS_LSTAT: doesIO("stat"),
}
