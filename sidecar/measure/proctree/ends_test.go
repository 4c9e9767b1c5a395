package proctree

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who waits for the end of processes is notified at once, and else when it is due.
func TestEnds(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	handle, err := unix.PidfdOpen(child.Process.Pid, 0)
	if err != nil {
		t.Skip("no pidfds here: ", err)
	}
	defer unix.Close(handle)
	e := newEnds()
	defer e.close()
	if e == nil || !e.add(handle, child.Process.Pid) {
		t.Fatal("there is no epoll")
	}
	due := time.Now().Add(20 * time.Millisecond)
	if pids, ok := e.wait(due); len(pids) != 0 || !ok || time.Now().Before(due) {
		t.Errorf("%v, %v before anybody ended, %v before it was due", pids, ok, time.Until(due))
	}
	time.AfterFunc(50*time.Millisecond, func() { child.Process.Kill() })
	due = time.Now().Add(time.Minute)
	if pids, ok := e.wait(due); !slices.Equal(pids, []int{child.Process.Pid}) || !ok || time.Now().After(due) {
		t.Errorf("%v, %v, want %d", pids, ok, child.Process.Pid)
	}
	var none *ends
	if _, ok := none.wait(due); ok {
		t.Error("where there is no epoll nobody can wait for it")
	}
	none.close()
}
