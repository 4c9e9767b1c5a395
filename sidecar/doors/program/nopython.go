package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/procfs"
	"github.com/omni-perf/omni-perf/sidecar/measure/pystack"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Of the processes that are meant in place of another so many are named, and looked at.
const (
	namedInstead  = 3
	lookedInstead = 64
)

// unreadable says why a process cannot be profiled; of a launcher, which of the processes that it started can, by the
// same command.
func (t Tools) unreadable(command string, pid int, err error) error {
	if !errors.Is(err, pystack.ErrNotPython) {
		return fmt.Errorf("process %d cannot be profiled: %w", pid, err)
	}
	fs := procfs.New("/proc")
	who := fmt.Sprintf("process %d", pid)
	if exe := fs.Executable(pid); exe != "" {
		who += " (" + exe + ")"
	}
	var instead []string
	below := descendants(&fs, pid)
	for _, child := range below[:min(len(below), lookedInstead)] {
		if _, err := t.Stack(child); err == nil {
			instead = append(instead, fmt.Sprintf("omni-perf %s %d (%s)", command, child, words.Clean(commandOf(fs.Arguments(child)), 60)))
		}
	}
	switch more := len(instead) - namedInstead; {
	case len(instead) == 0:
		return fmt.Errorf("%s runs no Python", who)
	case len(instead) == 1:
		return fmt.Errorf("%s runs no Python, but a process that it started does: %s", who, instead[0])
	case more > 0:
		instead = append(instead[:namedInstead], fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%s runs no Python, but processes that it started do: %s", who, strings.Join(instead, ", "))
}

// descendants are those of a process, the nearest first.
func descendants(fs *procfs.FS, pid int) (list []int) {
	all, err := fs.All()
	if err != nil {
		return nil
	}
	started := make(map[int][]int)
	slices.Sort(all)
	for _, p := range all {
		if st, err := fs.Stat(p); err == nil && !st.Zombie() {
			started[st.Parent] = append(started[st.Parent], p)
		}
	}
	list = slices.Clone(started[pid])
	for i := 0; i < len(list); i++ {
		list = append(list, started[list[i]]...)
	}
	return list
}
