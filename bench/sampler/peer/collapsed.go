package peer

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/testkit/truth"
)

// TruncatedFrame follows the last frame of a stack whose leaf end is missing, in omni-perf's output.
const TruncatedFrame = "~truncated"

// a frameReader takes apart one frame of a collapsed stack; skip is true for what is no Python frame.
type frameReader func(text string) (function string, line int, skip bool)

// fileFunctionLine reads "work.py:leaf:12", as Austin and Tachyon write it. Their process, thread and
// pseudo frames ("P12", "T0:12", "tid:12", "<GC>") have fewer parts.
func fileFunctionLine(text string) (function string, line int, skip bool) {
	rest, number, ok := cutLast(text, ":")
	if !ok {
		return "", 0, true
	}
	_, function, ok = cutLast(rest, ":")
	line, err := strconv.Atoi(number)
	return function, line, !ok || err != nil
}

// functionFileLine reads "leaf (work.py:12)", as py-spy writes it.
func functionFileLine(text string) (function string, line int, skip bool) {
	function, place, ok := cutLast(text, " (")
	if !ok {
		return text, 0, false
	}
	if _, number, ok := cutLast(strings.TrimSuffix(place, ")"), ":"); ok {
		line, _ = strconv.Atoi(number)
	}
	return function, line, false
}

// readCollapsed reads a file of collapsed stacks: a line "frame;frame;frame COUNT" for each distinct
// stack. Lines that begin with # are comments. If eachOnce, a line is one sample whatever its number
// says (Austin's is a time).
func readCollapsed(path string, read frameReader, eachOnce bool) (Recording, error) {
	var r Recording
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		sample, count, err := parseCollapsed(text, read)
		if eachOnce {
			count = 1
		}
		if err == nil {
			err = r.repeat(sample, float64(count))
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r, lines.Err()
}

func parseCollapsed(text string, read frameReader) (truth.Sample, int, error) {
	stack, number, ok := cutLast(text, " ")
	count, err := strconv.Atoi(number)
	if !ok || err != nil || count < 0 {
		return truth.Sample{}, 0, fmt.Errorf("%q does not end in a count", text)
	}
	var s truth.Sample
	for _, frame := range strings.Split(stack, ";") {
		if frame == TruncatedFrame {
			s.Truncated = true
			continue
		}
		function, line, skip := read(frame)
		if skip {
			continue
		}
		s.Functions = append(s.Functions, function)
		s.Lines = append(s.Lines, line)
	}
	return s, count, nil
}

func cutLast(text, separator string) (before, after string, ok bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// ReadCollapsed reads stacks of frames "work.py:leaf:12", where TruncatedFrame may stand at the end.
func ReadCollapsed(path string) (Recording, error) {
	return readCollapsed(path, fileFunctionLine, false)
}
