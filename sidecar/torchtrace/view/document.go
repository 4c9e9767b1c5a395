package view

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/kineto"
	"github.com/omni-perf/omni-perf/sidecar/torchtrace/table"
)

// Schema names the JSON document that WriteJSON writes.
const Schema = "omni-perf.analyze/1"

// WriteJSON writes one object: facts about the run, then one list of row objects
// per table, of the series those that keep selects. Numbers are not rounded,
// what does not exist is null.
func (r *Result) WriteJSON(w io.Writer, keep func(*table.Table) bool) error {
	out := bufio.NewWriterSize(w, 1<<16)
	head := struct {
		Schema          string           `json:"schema"`
		Mode            analyses.Mode    `json:"mode"`
		IncludeLastStep bool             `json:"include_last_step"`
		Ranks           []int            `json:"ranks"`
		ProfilerSteps   map[int][]int    `json:"profiler_steps"`
		Warnings        []kineto.Warning `json:"warnings"`
	}{Schema: Schema, Mode: analyses.Exact, Ranks: []int{}, ProfilerSteps: map[int][]int{}, Warnings: []kineto.Warning{}}
	if a := r.Analysis; a != nil {
		head.Mode, head.IncludeLastStep, head.Ranks, head.ProfilerSteps = a.Mode, a.IncludeLastStep, a.Ranks, a.ProfilerSteps
		head.Warnings = append(head.Warnings, a.Warnings...)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("writing the analysis: %w", err)
	}
	out.Write(text[:len(text)-1])
	for _, t := range r.tables() {
		if !keep(t) {
			continue
		}
		fmt.Fprintf(out, ",\n%q: ", t.Name)
		if err := t.WriteJSON(out); err != nil {
			return err
		}
	}
	out.WriteString("}\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the analysis: %w", err)
	}
	return nil
}
