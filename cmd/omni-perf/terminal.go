package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/omni-perf/omni-perf/sidecar/traces/kineto"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// columnsOf is the width of the terminal a stream goes to.
func columnsOf(stream *os.File) (columns int, terminal bool) {
	size, err := unix.IoctlGetWinsize(int(stream.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 0, false
	}
	return int(size.Col), true
}

// columnsOr is the same, or what is given where the stream goes elsewhere.
func columnsOr(stream *os.File, elsewhere int) int {
	if columns, ok := columnsOf(stream); ok {
		return columns
	}
	return elsewhere
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
		fmt.Fprintf(w, "\r\x1b[K%s%s %s  %d of %d files, %s events",
			strings.Repeat("━", full), strings.Repeat("─", width-full), words.PadLeft(words.Percent(share), 5), p.FilesDone, p.Files, words.Quantity(float64(p.Events), ""))
	}
}
