// Package truth is what the stack sampler is judged by: Python programs whose call graph, lines and
// time shares are known, the interpreters to run them with, and the judge that compares samples with
// that knowledge. In flows stacks from any sampler, ours or a peer's; out flow counts of what cannot
// be true. It is used by tests and by bench/sampler, and knows no sampler.
package truth

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Sample is one thread's stack, root first.
type Sample struct {
	Functions []string // names, qualified or not
	Lines     []int    // current line of each function, not positive if unknown; nil if the sampler knows none
	Truncated bool     // the sampler says that the leaf end is missing
}

// Legal is everything that can occur in a workload's stacks, as its own interpreter saw it.
type Legal struct {
	pairs map[[2]string]bool // caller, callee
	calls map[call]bool
	// creations are pairs whose callee is a generator or coroutine, with its first line: while it is being
	// created, its frame is above its creator's, at that line.
	creations map[call]bool
	lines     map[string]map[int]bool // by function
	roots     map[string]bool
	depth     int // of the deepest stack
}

// A call is a caller→callee pair with a line: the caller's, or for a creation the callee's.
type call struct {
	caller string
	line   int
	callee string
}

// A Verdict counts the samples that cannot be true. One sample may count as several.
type Verdict struct {
	Samples    int
	Impossible int // has a caller→callee pair that never occurs, or is too deep
	Lost       int // has no frame, or does not begin at a root
	Truncated  int // says so itself
	WrongLines int // has a frame at a line it cannot be at
	// Examples says of up to five of them what is wrong.
	Examples []string
}

// Share is count as a fraction of the samples, 0 if there are none.
func (v Verdict) Share(count int) float64 {
	if v.Samples == 0 {
		return 0
	}
	return float64(count) / float64(v.Samples)
}

// Add joins the counts of two verdicts.
func (v Verdict) Add(w Verdict) Verdict {
	return Verdict{
		Samples:    v.Samples + w.Samples,
		Impossible: v.Impossible + w.Impossible,
		Lost:       v.Lost + w.Lost,
		Truncated:  v.Truncated + w.Truncated,
		WrongLines: v.WrongLines + w.WrongLines,
		Examples:   append(slices.Clip(v.Examples), w.Examples...),
	}
}

// Judge compares samples with what is legal. A truncated sample's frames must be as true as any other's.
func (l *Legal) Judge(samples []Sample) Verdict {
	var v Verdict
	for _, s := range samples {
		v.Samples++
		if s.Truncated {
			v.Truncated++
		}
		names := bareNames(s.Functions)
		if reason := l.impossible(names, s.Lines); reason != "" {
			v.Impossible++
			v.example("impossible: %s", reason)
		}
		if len(names) == 0 || !l.roots[names[0]] {
			v.Lost++
			v.example("lost: begins at %q", slices.Concat(names, []string{""})[0])
		}
		if reason := l.wrongLine(names, s.Lines); reason != "" {
			v.WrongLines++
			v.example("wrong line: %s", reason)
		}
	}
	return v
}

func (v *Verdict) example(format string, arguments ...any) {
	if len(v.Examples) < 5 {
		v.Examples = append(v.Examples, fmt.Sprintf(format, arguments...))
	}
}

func (l *Legal) impossible(names []string, lines []int) string {
	for i := 1; i < len(names); i++ {
		if !l.pairs[[2]string{names[i-1], names[i]}] && !l.creation(names, lines, i) {
			return fmt.Sprintf("%s calls %s in %s", names[i-1], names[i], strings.Join(names, ";"))
		}
	}
	if len(names) > l.depth {
		return fmt.Sprintf("%d frames where %d is the most", len(names), l.depth)
	}
	return ""
}

// creation reports whether the frame at i is the leaf and being created by the one before it.
func (l *Legal) creation(names []string, lines []int, i int) bool {
	if i != len(names)-1 {
		return false
	}
	for c := range l.creations {
		if c.caller == names[i-1] && c.callee == names[i] && (i >= len(lines) || lines[i] <= 0 || lines[i] == c.line) {
			return true
		}
	}
	return false
}

// wrongLine demands that a caller is at a line it calls from, and the leaf at one of its own.
// Impossible pairs are not judged a second time.
func (l *Legal) wrongLine(names []string, lines []int) string {
	for i := range min(len(names), len(lines)) {
		line := lines[i]
		switch {
		case line <= 0:
		case i == len(names)-1:
			if known := l.lines[names[i]]; known != nil && !known[line] {
				return fmt.Sprintf("%s has no line %d", names[i], line)
			}
		case l.pairs[[2]string{names[i], names[i+1]}] && !l.calls[call{names[i], line, names[i+1]}] && !l.creation(names, lines, i+1):
			return fmt.Sprintf("%s does not call %s at line %d", names[i], names[i+1], line)
		}
	}
	return ""
}

// bareNames drops the qualification, which some samplers give and some do not: a.<locals>.b is b.
func bareNames(functions []string) []string {
	names := make([]string, len(functions))
	for i, function := range functions {
		names[i] = function[strings.LastIndexByte(function, '.')+1:]
	}
	return names
}

// DuringRounds drops the main thread's stacks from before the first and after the last round, which only a
// sampler inside the target sees. Stacks without their root stay, for they may be from any time.
func DuringRounds(samples []Sample) []Sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s Sample) bool {
		names := bareNames(s.Functions)
		return len(names) > 0 && names[0] == "<module>" && !slices.Contains(names, "repeat")
	})
}

// Shares counts the samples that have one of the functions in their stack, by function, each sample
// for the first that it has.
func Shares(samples []Sample, functions []string) map[string]float64 {
	shares := map[string]float64{}
	for _, s := range samples {
		names := bareNames(s.Functions)
		if i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(functions, name) }); i >= 0 {
			shares[names[i]]++
		}
	}
	return shares
}

// Distance is the total variation distance of two distributions given by weights: 0 if they are
// proportional, 1 if they have nothing in common or one is empty.
func Distance(got, want map[string]float64) float64 {
	sumGot, sumWant := 0.0, 0.0
	for _, weight := range got {
		sumGot += weight
	}
	for _, weight := range want {
		sumWant += weight
	}
	if sumGot == 0 || sumWant == 0 {
		return 1
	}
	distance := 0.0
	for name, weight := range want {
		distance += math.Abs(got[name]/sumGot - weight/sumWant)
	}
	for name, weight := range got {
		if _, known := want[name]; !known {
			distance += weight / sumGot
		}
	}
	return distance / 2
}

// LeafLines counts the samples whose leaf is one of the functions, and those of them that name
// another line than the one where that function spends its time.
func LeafLines(samples []Sample, hot map[string]int) (wrong, judged int) {
	for _, s := range samples {
		last := len(s.Functions) - 1
		if s.Truncated || last < 0 || last >= len(s.Lines) {
			continue
		}
		line, known := hot[bareNames(s.Functions[last:])[0]]
		if !known {
			continue
		}
		judged++
		if s.Lines[last] != line {
			wrong++
		}
	}
	return wrong, judged
}
