package targetfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// user is who a process is to the file system.
type user struct {
	uid, gid int // of the file system: the effective ones, unless it uses setfsuid(2)
	groups   []uint32
}

// maxGroups is the kernel's NGROUPS_MAX.
const maxGroups = 65536

// parseUser reads /proc/PID/status (proc_pid_status(5)): "Uid: real effective
// saved filesystem".
func parseUser(status []byte) (u user, ok bool) {
	u.uid, u.gid = -1, -1
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		switch string(name) {
		case "Uid":
			u.uid = lastOfFour(fields)
		case "Gid":
			u.gid = lastOfFour(fields)
		case "Groups":
			for _, f := range fields {
				if id, err := strconv.ParseUint(string(f), 10, 32); err == nil && len(u.groups) < maxGroups {
					u.groups = append(u.groups, uint32(id))
				}
			}
		}
	}
	return u, u.uid >= 0 && u.gid >= 0
}

func lastOfFour(fields [][]byte) int {
	if len(fields) != 4 {
		return -1
	}
	id, err := strconv.ParseUint(string(fields[3]), 10, 32)
	if err != nil || id == 1<<32-1 { // (uid_t)-1 means "no change" to setfsuid(2)
		return -1
	}
	return int(id)
}

func (u user) isOurs() bool { return u.uid == os.Geteuid() }

// errNotBecome is returned where we may read a process of another user, but not
// take that user's place.
var errNotBecome = errors.New("the rights of the process's user cannot be taken on")

// do calls open with this user's rights on files. Where the user is not ours, it
// does so in a thread of its own: the rights are per thread, and are not given back.
func (u user) do(open func() error) error {
	if u.isOurs() {
		return open()
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := u.become(); err != nil {
			result <- err
			return
		}
		result <- open()
	}()
	return <-result
}

// become makes this thread's rights on files those of the user. Package syscall's
// own functions would do so to all threads. The capabilities that override permissions
// go, too; leaving uid 0 would take them, but they need not come from there.
func (u user) become() error {
	var groups unsafe.Pointer
	if len(u.groups) > 0 {
		groups = unsafe.Pointer(&u.groups[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(u.groups)), uintptr(groups), 0); errno != 0 {
		return fmt.Errorf("%w: setgroups: %w", errNotBecome, errno)
	}
	// Both return the former id, whether they did it or not; asked for -1 they do nothing.
	for _, set := range []struct {
		call uintptr
		id   int
	}{{unix.SYS_SETFSGID, u.gid}, {unix.SYS_SETFSUID, u.uid}} {
		unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		if now, _, _ := unix.RawSyscall(set.call, ^uintptr(0), 0, 0); int(uint32(now)) != set.id {
			return errNotBecome
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("%w: capset: %w", errNotBecome, err)
	}
	return nil
}
