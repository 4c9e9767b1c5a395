package page

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/omni-perf/omni-perf/sidecar/show/output"
)

// display is what the notebook front end reads: a MIME bundle to show and what
// the tables' columns are called elsewhere.
type display struct {
	Bundle map[string]string `json:"bundle"`
	Tables []displayTable    `json:"tables"`
}

type displayTable struct {
	Name    string          `json:"name"`
	Title   string          `json:"title"`
	Note    string          `json:"note"`
	Columns []displayColumn `json:"columns"`
}

type displayColumn struct {
	Name string `json:"name"`
	HTA  string `json:"hta"` // the DataFrame column of HolisticTraceAnalysis
}

// DisplayFile writes what a notebook shows as JSON.
func (r *Result) DisplayFile(path string) error {
	var html, text bytes.Buffer
	if err := r.Fragment(&html); err != nil {
		return err
	}
	if err := r.Text(&text, 100); err != nil {
		return err
	}
	d := display{Bundle: map[string]string{"text/html": html.String(), "text/plain": text.String()}}
	for _, t := range r.tables() {
		shown := displayTable{Name: t.Name, Title: t.Title, Note: t.Note}
		for _, c := range t.Columns {
			shown.Columns = append(shown.Columns, displayColumn{c.Name, c.HTAName})
		}
		d.Tables = append(d.Tables, shown)
	}
	return output.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(d) })
}
