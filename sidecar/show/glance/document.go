package glance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// Kind is what the document of a notebook calls itself, in its first member.
	Kind = "omni_perf.notebook"
	// Version changes when a reader of an older document would go wrong.
	Version = 1
	// KindBytes are those of a document in which it says what it is.
	KindBytes = 256

	maxDocument = 64 << 20 // bytes
	maxCells    = 20_000
)

// ErrNoNotebook is of a file that is no document of a notebook, or a damaged one.
var ErrNoNotebook = errors.New("these are not the cells of a notebook, as omni-perf run NOTEBOOK.ipynb --format json writes them")

var errDamaged = errors.New("they are damaged: their JSON is not whole")

// Document is a Notebook without its pictures, to be kept and compared.
type Document struct {
	Document string `json:"document"`
	Version  int    `json:"version"`
	Name     string `json:"name"`  // of the notebook; empty: not known
	Cells    []Row  `json:"cells"` // in the order in which they began
}

// Row is a Cell of it; null is not known, or that there was nothing of the kind.
type Row struct {
	Number      int    `json:"number"`  // execution count; 0: not known
	Name        string `json:"name"`    // as its user called it; or empty
	Code        string `json:"code"`    // its first line that says something
	Outcome     string `json:"outcome"` // "ok", "error: ValueError"; empty: not known
	DurationNS  int64  `json:"duration_ns"`
	Headline    string `json:"headline"`
	CPUNS       *int64 `json:"cpu_ns"`
	PeakBytes   *int64 `json:"peak_bytes"`
	PeakAtLeast bool   `json:"peak_at_least"` // the peak is that of what was seen
	KeptBytes   *int64 `json:"kept_bytes"`
	IdleNS      *int64 `json:"idle_ns"`       // of the devices in use …
	IdleKnownNS int64  `json:"idle_known_ns"` // … of so much that is known of them
	// EnergyJ is what these devices used, whoever used them; absent where they do not count it.
	EnergyJ *float64 `json:"energy_j,omitempty"`
	// TracebackNS is for how long a traceback was formatted when the cell had failed, which is not in its time; absent: it is
	// not known, and may be in its time.
	TracebackNS *int64 `json:"traceback_ns,omitempty"`
	// NoCPUNS is for how long, at most, no CPU was free for the cell, IONS for how long it waited for input and output,
	// ImportNS what its imports took, and CPUsElsewhere the share, 0 to 1, of the machine's CPUs that other programs used meanwhile; absent where that is not known.
	NoCPUNS       *int64   `json:"no_cpu_ns,omitempty"`
	IONS          *int64   `json:"io_ns,omitempty"`
	ImportNS      *int64   `json:"import_ns,omitempty"`
	CPUsElsewhere *float64 `json:"cpus_elsewhere,omitempty"`
}

// Document is the notebook's.
func (n Notebook) Document() *Document {
	d := &Document{Document: Kind, Version: Version, Name: n.Name, Cells: []Row{}}
	for _, c := range n.Cells {
		f := c.Figures
		d.Cells = append(d.Cells, Row{
			Number: c.Number, Name: c.Name, Code: c.Code, Outcome: c.Outcome, DurationNS: int64(c.Duration), Headline: c.Headline,
			CPUNS: nanos(f.CPU), PeakBytes: f.Peak, PeakAtLeast: f.PeakAtLeast, KeptBytes: f.Kept, IdleNS: nanos(f.Idle), IdleKnownNS: int64(f.Known), EnergyJ: f.Energy,
			TracebackNS: nanos(f.Traceback), NoCPUNS: nanos(f.NoCPU), IONS: nanos(f.IO), ImportNS: nanos(f.Imports), CPUsElsewhere: f.Elsewhere,
		})
	}
	return d
}

func nanos(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ns := int64(*d)
	return &ns
}

// JSON writes it.
func (d *Document) JSON() ([]byte, error) { return indented(d) }

// indented writes a document for people, too.
func indented(document any) ([]byte, error) {
	text, err := json.MarshalIndent(document, "", " ")
	return append(text, '\n'), err
}

// Begins reports whether a text, of which the first KindBytes are enough, begins as a document does.
func Begins(text []byte) bool {
	return bytes.Contains(text[:min(len(text), KindBytes)], []byte(`"`+Kind+`"`))
}

// Read reads a document.
func Read(r io.Reader) (*Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(text) <= maxDocument && Begins(text) && !json.Valid(text) {
		return nil, errDamaged
	}
	d := &Document{}
	if len(text) > maxDocument || json.Unmarshal(text, d) != nil || d.Document != Kind {
		return nil, ErrNoNotebook
	}
	if d.Version != Version {
		return nil, fmt.Errorf("they are of version %d, and this omni-perf reads version %d", d.Version, Version)
	}
	if len(d.Cells) > maxCells {
		return nil, fmt.Errorf("they are %d, and at most %d are read", len(d.Cells), maxCells)
	}
	const most = int64(366 * 24 * time.Hour)
	for _, c := range d.Cells {
		if c.DurationNS > most {
			return nil, ErrNoNotebook
		}
		for _, ns := range []int64{c.DurationNS, value(c.TracebackNS), value(c.CPUNS), value(c.NoCPUNS), value(c.IONS), value(c.ImportNS), value(c.IdleNS), c.IdleKnownNS} {
			if ns < 0 || ns/maxCPUs > most {
				return nil, ErrNoNotebook
			}
		}
		if e := c.CPUsElsewhere; e != nil && !(*e >= 0 && *e <= 1) {
			return nil, ErrNoNotebook
		}
	}
	return d, nil
}

// maxCPUs is of how many CPUs or devices a cell may have used the time.
const maxCPUs = 4096

func value(ns *int64) int64 {
	if ns == nil {
		return 0
	}
	return *ns
}
