package server

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartDetached starts this program again, with the given arguments, in a session
// of its own and with our streams, and does not wait for it: when we exit it is
// nobody's child but init's. SIGINT is ignored from its first instruction on.
func StartDetached(args ...string) error {
	signal.Ignore(unix.SIGINT, unix.SIGHUP) // inherited through exec
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("the sidecar's program was not found: %w", err)
	}
	_, err = os.StartProcess(self, append([]string{os.Args[0]}, args...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("the sidecar could not be started: %w", err)
	}
	return nil
}
