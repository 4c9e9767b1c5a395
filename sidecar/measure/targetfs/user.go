package targetfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
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

// parseUsers reads /proc/PID/status (proc_pid_status(5)): "Uid: real effective
// saved filesystem". users are those that the process is by any of its ids, in the order
// of the columns; none where the file is of an unknown form. settled: all are
// the same: no set-uid program runs.
func parseUsers(status []byte) (users []user, settled bool) {
	var uids, gids []int
	var groups []uint32
	for line := range bytes.Lines(status) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		switch string(name) {
		case "Uid":
			uids = fourIDs(fields)
		case "Gid":
			gids = fourIDs(fields)
		case "Groups":
			for _, f := range fields {
				if id, err := strconv.ParseUint(string(f), 10, 32); err == nil && len(groups) < maxGroups {
					groups = append(groups, uint32(id))
				}
			}
		}
	}
	if uids == nil || gids == nil {
		return nil, false
	}
	for i := range uids {
		if u := (user{uids[i], gids[i], groups}); !slices.ContainsFunc(users, u.equal) {
			users = append(users, u)
		}
	}
	return users, len(users) == 1
}

// fourIDs reads four ids; nil where that is not what there is.
func fourIDs(fields [][]byte) []int {
	if len(fields) != 4 {
		return nil
	}
	ids := make([]int, 4)
	for i := range ids {
		id, err := strconv.ParseUint(string(fields[i]), 10, 32)
		if err != nil || id == 1<<32-1 { // (uid_t)-1 means "no change" to setfsuid(2)
			return nil
		}
		ids[i] = int(id)
	}
	return ids
}

func (u user) equal(v user) bool {
	return u.uid == v.uid && u.gid == v.gid && slices.Equal(u.groups, v.groups)
}

// rights are those that all of some users have. The zero value has none.
type rights struct {
	users []user
	none  bool // whatever the users are
}

// maxUsers bounds the users of one process: each costs a thread at each file.
const maxUsers = 8

// narrow takes away the rights that one of the users lacks, or all if none is known.
func (r *rights) narrow(to []user) {
	r.none = r.none || len(to) == 0
	for _, u := range to {
		if slices.ContainsFunc(r.users, u.equal) || u.isRoot() && len(r.users) > 0 {
			continue
		}
		r.users = append(slices.DeleteFunc(r.users, user.isRoot), u)
	}
	r.none = r.none || len(r.users) > maxUsers
}

// cover reports whether the user has no other rights than these.
func (r *rights) cover(u user) bool {
	return slices.ContainsFunc(r.users, func(v user) bool { return v.equal(u) || v.isRoot() })
}

// open opens a file if each of the users may; ours: they are our own rights, with
// which it is called in the calling thread.
func (r *rights) open(open func(ours bool) (*os.File, error)) (file *os.File, err error) {
	if r.none || len(r.users) == 0 {
		return nil, errNoRights
	}
	for _, u := range r.users {
		var opened *os.File
		err := u.do(func() (err error) {
			opened, err = open(u.isOurs())
			return err
		})
		if err == nil && file != nil && !same(file, opened) { // one name, two files: renamed meanwhile
			opened.Close()
			err = errNoRights
		}
		if file != nil {
			file.Close()
		}
		if err != nil {
			return nil, err
		}
		file = opened
	}
	return file, nil
}

func same(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// isRoot reports whether the user may open what any user may.
func (u user) isRoot() bool { return u.uid == 0 }

func (u user) isOurs() bool { return u.uid == os.Geteuid() }

// errNoRights is returned for a process whose user is not known, or that has been too many.
var errNoRights = errors.New("the rights of the process's user are not known")

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
