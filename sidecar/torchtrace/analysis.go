package torchtrace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
)

// Schema names the JSON document that Analysis.WriteJSON writes.
const Schema = "omni-perf.analyze/1"

// Analysis is the result of Analyze.
type Analysis struct {
	Mode            Mode
	IncludeLastStep bool
	Ranks           []int
	// ProfilerSteps are the ProfilerStep#N numbers analysed, per rank.
	ProfilerSteps map[int][]int
	Warnings      []Warning
	Tables        []*Table
}

// Table returns the table of that name, or nil when it was not asked for.
func (a *Analysis) Table(name string) *Table {
	for _, t := range a.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// WriteJSON writes one object: facts about the run, then one list of row
// objects per table. Numbers are not rounded, what does not exist is null.
func (a *Analysis) WriteJSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	head := struct {
		Schema          string        `json:"schema"`
		Mode            Mode          `json:"mode"`
		IncludeLastStep bool          `json:"include_last_step"`
		Ranks           []int         `json:"ranks"`
		ProfilerSteps   map[int][]int `json:"profiler_steps"`
		Warnings        []Warning     `json:"warnings"`
	}{Schema, a.Mode, a.IncludeLastStep, a.Ranks, a.ProfilerSteps, a.Warnings}
	if head.Ranks == nil {
		head.Ranks = []int{}
	}
	if head.ProfilerSteps == nil {
		head.ProfilerSteps = map[int][]int{}
	}
	if head.Warnings == nil {
		head.Warnings = []Warning{}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("writing the analysis: %w", err)
	}
	out.Write(text[:len(text)-1])
	for _, t := range a.Tables {
		fmt.Fprintf(out, ",\n%q: ", t.Name)
		writeRows(out, t)
	}
	out.WriteString("}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the analysis: %w", err)
	}
	return nil
}

// writeRows writes a table as a list of objects. bufio keeps the first error
// for Flush.
func writeRows(out *bufio.Writer, t *Table) {
	var row []byte
	out.WriteByte('[')
	for r := range t.Len() {
		row = row[:0]
		if r > 0 {
			row = append(row, ',')
		}
		row = append(row, '\n')
		for i, c := range t.Columns {
			row = append(row, ",{"[b2i(i == 0)])
			row = strconv.AppendQuote(row, c.Name)
			row = append(row, ':')
			row = appendJSON(row, c.Value(r))
		}
		out.Write(append(row, '}'))
	}
	out.WriteByte(']')
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func appendJSON(b []byte, value any) []byte {
	switch v := value.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case string:
		text, _ := json.Marshal(v) // a string always marshals
		return append(b, text...)
	}
	return append(b, "null"...)
}
