package view

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

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
		Headline        *string          `json:"headline"` // the id of the finding to begin with; null without any
		Findings        []finding        `json:"findings"`
	}{Schema: Schema, Mode: analyses.Exact, Ranks: []int{}, ProfilerSteps: map[int][]int{}, Warnings: []kineto.Warning{}}
	if a := r.Analysis; a != nil {
		head.Mode, head.IncludeLastStep, head.Ranks, head.ProfilerSteps = a.Mode, a.IncludeLastStep, a.Ranks, a.ProfilerSteps
		head.Warnings = append(head.Warnings, a.Warnings...)
	}
	head.Findings = r.foundJSON()
	if len(head.Findings) > 0 {
		head.Headline = &head.Findings[0].ID
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

// finding is one of findings.Finding as the document has it.
type finding struct {
	ID        string              `json:"id"`
	Value     float64             `json:"value"`
	Unit      string              `json:"unit"`
	Threshold float64             `json:"threshold"`
	Rank      *int64              `json:"rank"`
	Device    *int64              `json:"device"`
	Place     *documentPlace      `json:"place"`
	Name      string              `json:"name"`
	On        string              `json:"on"`
	Evidence  map[string]*float64 `json:"evidence"`
	Text      string              `json:"text"` // for people: rendered from the rest
}

type documentPlace struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// foundJSON are the findings in the order of reading.
func (r *Result) foundJSON() []finding {
	list := []finding{}
	for _, f := range r.findings() {
		d := finding{
			ID: string(f.ID), Value: f.Value, Unit: string(f.Unit), Threshold: f.Threshold, Rank: f.Rank, Device: f.Device,
			Name: f.Name, On: f.On, Evidence: map[string]*float64{}, Text: sentence(f),
		}
		if f.Place != nil {
			d.Place = &documentPlace{f.Place.File, f.Place.Line, f.Place.Function}
		}
		for name, v := range f.Evidence {
			if d.Evidence[name] = &v; math.IsNaN(v) || math.IsInf(v, 0) {
				d.Evidence[name] = nil
			}
		}
		list = append(list, d)
	}
	return list
}
