package specimen

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Program is a script, or the cells of a notebook of which the last one is
// recorded.
type Program struct {
	Name  string
	Texts []Text // in order; scripts have one
	// Says and Advises are the reviewed headline and the id of its advice.
	Says, Advises string
	// What a live run must find: the main finding, the cause with most of the time,
	// and no word of Never in the headline and the advice.
	Finding, Cause string
	Never          []string

	Needs     []string      // modules without which it cannot run
	Chosen    bool          // run live in every test run, not only by make truth
	Input     string        // given to it on standard input, or to input(), after a second
	Arguments []string      // of a script
	Whole     bool          // the recording is kept as fine as it is, with what a simulated device truly did
	Interrupt time.Duration // after which it is interrupted; 0: not
	GPU       string        // script of the fake NVML library; empty: no GPU
	Table     string        // file it is in
}

// Text is a piece of source.
type Text struct {
	Kind   string // "cell", "script" or "file NAME"
	Source string
}

// Here marks the line that has most of the headline's time.
const Here = "# HERE"

// Script means a script, not cells.
func (p *Program) Script() bool { return p.Recorded().Kind == "script" }

// Recorded is the text that is recorded: the script, or the last cell.
func (p *Program) Recorded() Text { return p.Texts[len(p.Texts)-1] }

// HerePlace is where the mark is: the text and its line, counted from 1; ok is
// false without a mark.
func (p *Program) HerePlace() (text, line int, ok bool) {
	for i, t := range p.Texts {
		for n, l := range strings.Split(t.Source, "\n") {
			if strings.Contains(l, Here) {
				return i, n + 1, true
			}
		}
	}
	return 0, 0, false
}

// File is the name of the recording.
func (p *Program) File() string { return strings.ReplaceAll(p.Name, " ", "-") + ".json.gz" }

// Load reads all tables of a folder.
func Load(folder string) ([]*Program, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []*Program
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list, err := Parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, p := range list {
			if p.Table = path; slices.ContainsFunc(all, func(o *Program) bool { return o.Name == p.Name }) {
				return nil, fmt.Errorf("%s: there are two programs called %q", path, p.Name)
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// Parse reads a table:
//
//	=== a name of letters and spaces
//	says The headline.
//	advises id-of-the-advice
//	finding id
//	cause id
//	never word, other words
//	needs module, module
//	chosen | input TEXT | interrupt 1.5s | gpu LINE of the fake library's script
//	--- cell, --- script or --- file NAME
//	source
//
// What precedes the first program is prose.
func Parse(text string) ([]*Program, error) {
	var list []*Program
	var at *Program
	inSource := false
	for n, line := range strings.Split(text, "\n") {
		if name, ok := strings.CutPrefix(line, "=== "); ok {
			at, inSource = &Program{Name: name}, false
			list = append(list, at)
			continue
		}
		if at == nil {
			continue
		}
		if kind, ok := strings.CutPrefix(line, "--- "); ok {
			at.Texts, inSource = append(at.Texts, Text{Kind: kind}), true
			continue
		}
		if inSource {
			at.Texts[len(at.Texts)-1].Source += line + "\n"
			continue
		}
		if err := at.set(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	for _, p := range list {
		for i := range p.Texts {
			p.Texts[i].Source = strings.TrimRight(p.Texts[i].Source, "\n") + "\n"
		}
		if len(p.Texts) == 0 {
			return nil, fmt.Errorf("%q has no source", p.Name)
		}
	}
	return list, nil
}

func (p *Program) set(line string) (err error) {
	name, value, _ := strings.Cut(line, " ")
	switch name {
	case "":
	case "says":
		p.Says = value
	case "advises":
		p.Advises = value
	case "finding":
		p.Finding = value
	case "cause":
		p.Cause = value
	case "never":
		p.Never = append(p.Never, listed(value)...)
	case "needs":
		p.Needs = append(p.Needs, listed(value)...)
	case "chosen":
		p.Chosen = true
	case "input":
		p.Input = value
	case "interrupt":
		p.Interrupt, err = time.ParseDuration(value)
	case "gpu":
		p.GPU += value + "\n"
	default:
		return fmt.Errorf("%q is not known", name)
	}
	return err
}

func listed(value string) []string {
	var list []string
	for _, v := range strings.Split(value, ",") {
		list = append(list, strings.TrimSpace(v))
	}
	return list
}
