package page

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Kind and Version say what a document is, as those of a report do. The version
// changes when a reader of an older document would go wrong.
const (
	Kind    = "omni_perf.analysis"
	Version = 2
)

// head is what the document has beside its tables; analysis.schema.json describes
// every property.
type head struct {
	Document        string        `json:"document"`
	Version         int           `json:"version"`
	Generator       generator     `json:"generator"`
	Mode            analyses.Mode `json:"mode"`
	IncludeLastStep bool          `json:"include_last_step"`
	Ranks           []int         `json:"ranks"`
	ProfilerSteps   map[int][]int `json:"profiler_steps"`
	Warnings        []warning     `json:"warnings"`
	Headline        headline      `json:"headline"`
	Findings        []finding     `json:"findings"`
}

// generator is the program that wrote the document.
type generator struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// headline is what to read first, and what it refers to.
type headline struct {
	Finding *int   `json:"finding"`
	Text    string `json:"text"`
}

// warning is a kineto.Warning as the document has it.
type warning struct {
	File *string `json:"file"`
	Byte *int64  `json:"byte"`
	What string  `json:"what"`
	Lost *string `json:"lost"`
	Note bool    `json:"note"`
}

// WriteJSON writes one object: facts about the run, then one list of row objects
// per table, of the series those that keep selects. Numbers are not rounded,
// what does not exist is null.
func (r *Result) WriteJSON(w io.Writer, keep func(*table.Table) bool) error {
	out := bufio.NewWriterSize(w, 1<<16)
	h := head{
		Document: Kind, Version: Version, Generator: generator{"omni_perf", r.Version},
		Mode: analyses.Exact, Ranks: []int{}, ProfilerSteps: map[int][]int{}, Warnings: []warning{}, Findings: r.foundJSON(),
	}
	if a := r.Analysis; a != nil {
		h.Mode, h.IncludeLastStep, h.Ranks, h.ProfilerSteps = a.Mode, a.IncludeLastStep, a.Ranks, a.ProfilerSteps
		for _, w := range a.Warnings {
			h.Warnings = append(h.Warnings, warning{orNull(w.File, ""), orNull(w.Byte, -1), w.What, orNull(w.Lost, ""), w.Note})
		}
	}
	if len(h.Findings) > 0 {
		h.Headline = headline{new(int), h.Findings[0].Text}
	}
	text, err := json.Marshal(h)
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
	Name      *string             `json:"name"`
	Call      *string             `json:"call"`
	On        *string             `json:"on"`
	Evidence  map[string]*float64 `json:"evidence"`
	Text      string              `json:"text"` // for people: rendered from the rest
}

type documentPlace struct {
	File     *string `json:"file"`
	Line     *int    `json:"line"`
	Function string  `json:"function"`
}

// orNull is a value, null where it is the one that stands for none.
func orNull[T comparable](value, none T) *T {
	if value == none {
		return nil
	}
	return &value
}

// foundJSON are the findings in the order of reading.
func (r *Result) foundJSON() []finding {
	list := []finding{}
	for _, f := range r.findings() {
		d := finding{
			ID: string(f.ID), Value: f.Value, Unit: string(f.Unit), Threshold: f.Threshold, Rank: f.Rank, Device: f.Device,
			Name: orNull(f.Name, ""), Call: orNull(f.Call, ""), On: orNull(f.On, ""), Evidence: map[string]*float64{}, Text: sentence(f),
		}
		if f.Place != nil {
			d.Place = &documentPlace{orNull(f.Place.File, ""), orNull(f.Place.Line, 0), f.Place.Function}
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
