package procfs

import (
	"bytes"
	"math"
	"os"
	"strconv"
)

// Resident is the memory that is resident in a process, in bytes; false where that is not known. From any goroutine.
func Resident(pid int) (int64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	return ParseStatm(text)
}

// ParseStatm reads the second figure of /proc/PID/statm, "size resident shared …" in pages, as bytes.
func ParseStatm(text []byte) (int64, bool) {
	_, rest, _ := bytes.Cut(bytes.TrimSpace(text), []byte{' '})
	pages, _, _ := bytes.Cut(rest, []byte{' '})
	n, err := strconv.ParseUint(string(pages), 10, 50)
	if err != nil || n == 0 || n > math.MaxInt64/pageSize { // of a zombie all are 0: that is nothing that it gave back
		return 0, false
	}
	return int64(n * pageSize), true
}
