package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
)

// columnsOf is the width of the terminal a stream goes to.
func columnsOf(stream *os.File) (columns int, terminal bool) {
	size, err := unix.IoctlGetWinsize(int(stream.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 0, false
	}
	return int(size.Col), true
}

// progressBar draws on one line of a terminal and clears it at the end.
func progressBar(w io.Writer) func(kineto.Progress) {
	const width = 28
	return func(p kineto.Progress) {
		if p.Done {
			fmt.Fprint(w, "\r\x1b[K")
			return
		}
		share := 0.0
		if p.AllBytes > 0 {
			share = min(1, float64(p.Bytes)/float64(p.AllBytes))
		}
		full := int(share * width)
		fmt.Fprintf(w, "\r\x1b[K%s%s %3.0f %%  %d of %d files, %.1f M events",
			strings.Repeat("━", full), strings.Repeat("─", width-full), 100*share, p.FilesDone, p.Files, float64(p.Events)/1e6)
	}
}
