package viewer

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// Chart is the static picture's geometry and words, as the scripts take it over:
// a document's "chart". Everything is in the picture's pixels, so that nothing is
// laid out twice: what the viewer paints unzoomed is where the picture has it.
type Chart struct {
	Width   float64     `json:"width"`
	Plot    [4]float64  `json:"plot"`  // where time runs: x0, y0, x1, y1
	Axis    float64     `json:"axis"`  // baseline of the ticks' labels
	Strip   float64     `json:"strip"` // upper edge of the overview, below the finding
	Pitch   float64     `json:"pitch"` // of a flame chart's rows
	Folded  bool        `json:"folded"`
	Title   [][3]string `json:"title"`            // text, tone, face ("", "b" or "code")
	Finding [][3]string `json:"finding"`          // the same
	Legend  [][2]string `json:"legend"`           // paint, name
	Phases  [][3]string `json:"phases,omitempty"` // of a training's steps: id, name, paint
	Notes   []string    `json:"notes"`
	More    string      `json:"more,omitempty"` // about the threads that have no lane
	Threads []string    `json:"threads"`        // names, by the document's list
	States  []string    `json:"states"`         // words for what threads do, by report.State
	Help    string      `json:"help"`           // Help
	Lanes   []Lane      `json:"lanes"`
	Tables  []Table     `json:"tables,omitempty"` // of the picture, that the scripts have none of their own for
}

// Table is a table of the picture, which the scripts show as it is while all of the recording is in view.
type Table struct {
	Heading string `json:"heading"`
	Note    string `json:"note"`
	Rows    []Row  `json:"rows"`
}

// Row is one of its rows.
type Row struct {
	Name   string  `json:"name"`
	Figure string  `json:"figure"`
	Share  float64 `json:"share"` // the bar's length, 0..1
	Aside  string  `json:"aside"` // behind the bar
	Text   string  `json:"text"`  // the line's text, or what else there is
	Hint   string  `json:"hint"`
}

// Lane is one stripe over the time axis.
type Lane struct {
	Kind    string   `json:"kind"`             // "track", "lines", "flame", "thread", "stream" or "ranks"
	Index   int      `json:"index"`            // of the track, thread or stream; of the file of lines, -1 for all own files
	Y0      float64  `json:"y0"`               //
	Y1      float64  `json:"y1"`               //
	Rows    int      `json:"rows,omitempty"`   // of a flame chart; 0 is a strip
	Limit   int      `json:"limit,omitempty"`  // of its rows, where the last one shows what is left out
	By      string   `json:"by,omitempty"`     // "code": a strip shows whose code ran, not the state
	Paint   string   `json:"paint,omitempty"`  // of a track
	Bottom  float64  `json:"bottom,omitempty"` // of a track: value at the lower edge
	Top     float64  `json:"top,omitempty"`    // of a track: value at the upper edge
	Name    string   `json:"name"`
	Sources []string `json:"sources,omitempty"`
	Value   string   `json:"value,omitempty"`
	Aside   string   `json:"aside,omitempty"`
	Cells   *Cells   `json:"cells,omitempty"` // of the ranks' steps
}

// Cells are the ranks' steps, row by row, as columns; a row's are those from First[row] to First[row+1], in order of time.
type Cells struct {
	ByLength bool     `json:"by_length,omitempty"` // own times are the steps' lengths
	Ranks    []string `json:"ranks"`               // their names
	Threads  []int    `json:"threads"`             // their main threads, by the document's list; -1: it is not there
	First    []int    `json:"first"`
	AtUS     []int64  `json:"at_us"`
	LengthUS []int64  `json:"length_us"`
	Level    []int    `json:"level"`     // 0 to 3: how hot; -1: not known
	Rank     []int    `json:"rank"`      // the rank that is longest there
	Step     []int    `json:"step"`      // which of its steps, from 1
	StepUS   []int64  `json:"step_us"`   // its length
	OwnUS    []int64  `json:"own_us"`    // of it the rank's own time; -1: not known
	MedianUS []int64  `json:"median_us"` // of the ranks at that step; -1: not known
}

// View is one way to look at a document, and what it is called.
type View struct{ ID, Name string }

// The views, in their order on the page. Idle and Steps are for documents that have
// something to show there.
var (
	Timeline = View{"timeline", "Timeline"}
	Flame    = View{"flame", "Flame graph"}
	Lines    = View{"lines", "Lines"}
	Idle     = View{"idle", "GPU idle"}
	Steps    = View{"steps", "Steps"}
	Findings = View{"findings", "Findings"}
)

// Payload is the data beside a picture that the scripts read: a line of words
// (the format, its version, the views), then the document as gzip and base64. It has
// no character that means anything to HTML, whatever is in the document.
func Payload(views []View, document any) (string, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed) // the best compression saves 1 % more and takes twice the time
	if err := json.NewEncoder(zip).Encode(document); err != nil {
		return "", fmt.Errorf("pack the chart's data: %w", err)
	}
	if err := zip.Close(); err != nil {
		return "", fmt.Errorf("pack the chart's data: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "omni_perf %d", Version)
	for _, v := range views {
		b.WriteString(" " + v.ID + ":" + strings.ReplaceAll(v.Name, " ", "_"))
	}
	b.WriteString("\n")
	b.WriteString(base64.StdEncoding.EncodeToString(packed.Bytes()))
	return b.String(), nil
}
