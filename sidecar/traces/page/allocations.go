package page

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/traces/snapshot"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// allocationsScript draws single allocations on a canvas, and answers pointing and keys.
//
//go:embed allocations.js
var allocationsScript string

const (
	mostStackText   = 700_000 // bytes of frames and places on a page, as they are written
	mostStackFrames = 40      // of one stack, innermost first
	frameText       = 160
)

// pageAllocations is what the page has of single allocations.
type pageAllocations struct {
	About  string
	Data   template.JS // JSON, in which nothing ends a script
	Script template.JS
	Style  template.CSS
}

// allocationData is what the script reads.
type allocationData struct {
	Events     int         `json:"events"`
	Timed      bool        `json:"timed"`
	At         []int       `json:"at"`    // events …
	Times      []int64     `json:"times"` // … and when they were, µs
	Total      []int64     `json:"total"`
	Reserved   []int64     `json:"reserved"`
	Rest       [][]int64   `json:"rest"` // by moment and category
	Categories []string    `json:"categories"`
	Bands      [][8]int64  `json:"bands"` // from, to, when, until, bytes, address, index in stacks, category
	Stacks     []pageStack `json:"stacks"`
	Frames     []string    `json:"frames"`
	Count      int         `json:"count"` // of all allocations

	text int // bytes of frames and places
}

// pageStack is a stack as the script reads it.
type pageStack struct {
	Place  string `json:"place"`
	Frames []int  `json:"frames"` // indices of texts, innermost first
	More   int    `json:"more"`   // that are left out
}

// fits counts a text, and reports whether the page has room for it.
func (d *allocationData) fits(text string) bool {
	written, err := json.Marshal(text)
	if err != nil || d.text+len(written) > mostStackText {
		return false
	}
	d.text += len(written)
	return true
}

// allocations is what the page shows of them; nil: there is no history.
func (r *Result) allocations() (*pageAllocations, error) {
	b := r.Bands
	if b == nil || len(b.List) == 0 || len(b.Total) != len(b.At) {
		return nil, nil
	}
	d := allocationData{
		Events: b.Events, Timed: b.Times != nil, At: b.At, Times: b.Times, Total: b.Total, Reserved: b.Reserved, Rest: b.Rest,
		Categories: snapshot.Categories(), Count: b.Count,
	}
	stacks, frames := make(map[snapshot.StackID]int), make(map[string]int)
	for _, band := range b.List {
		at, known := stacks[band.Stack]
		if !known {
			at = len(d.Stacks)
			stacks[band.Stack] = at
			d.addStack(r.Memory, band.Stack, frames)
		}
		d.Bands = append(d.Bands, [8]int64{
			int64(band.From), int64(band.To), band.FromUs, band.ToUs, band.Size, band.Address, int64(at), int64(band.Category),
		})
	}
	text, err := json.Marshal(d) // escapes < and >
	if err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	about := snapshot.DeviceName(b.Device) + ": " + words.Plural(b.Count, "allocation", "allocations")
	if rest := b.Count - len(b.List); rest > 0 {
		about += fmt.Sprintf("; the %s that had most memory for longest one by one, the others together on top", words.Count(int64(len(b.List))))
	}
	return &pageAllocations{About: about, Data: template.JS(text), Script: template.JS(allocationsScript)}, nil
}

// addStack adds a stack, whose frames others share.
func (d *allocationData) addStack(s *snapshot.Snapshot, id snapshot.StackID, known map[string]int) {
	stack := pageStack{Place: cut(plain(s.Place(id)), frameText), Frames: []int{}}
	if !d.fits(stack.Place) {
		stack.Place = "…"
	}
	for i, frame := range s.FramesOf(id) {
		frame = cut(plain(frame), frameText)
		at, is := known[frame]
		if i >= mostStackFrames || !is && !d.fits(frame) {
			stack.More++
			continue
		}
		if !is {
			at = len(d.Frames)
			known[frame] = at
			d.Frames = append(d.Frames, frame)
		}
		stack.Frames = append(stack.Frames, at)
	}
	d.Stacks = append(d.Stacks, stack)
}

// allocationsStyle has a colour for each category, as in the other charts.
func allocationsStyle() string {
	sheet := func(dark bool) string {
		var b strings.Builder
		for i, category := range snapshot.Categories() {
			for _, c := range colours {
				if c.paint == paintOf(category) {
					colour := c.light
					if dark {
						colour = c.dark
					}
					fmt.Fprintf(&b, "--c%d:%s;", i, colour)
				}
			}
		}
		others := "#dcdce2"
		if dark {
			others = "#3c3c44"
		}
		return ".alloc{" + b.String() + "--others:" + others + "}"
	}
	const layout = ".alloc canvas{display:block;width:100%;height:380px;cursor:crosshair;touch-action:none}" +
		".alloc canvas:focus-visible{outline:2px solid var(--mark)}.alloc .now{min-height:1.5em}.alloc .now b{font-weight:600}" +
		".alloc i{display:inline-block;width:10px;height:10px;border-radius:2px;margin:0 4px 0 12px}" +
		".alloc .is{min-height:8em;border-left:3px solid var(--line);padding-left:10px;margin:6px 0}" +
		".alloc .is ol{margin:2px 0;padding:0;list-style:none;font:12px/1.4 ui-monospace,'DejaVu Sans Mono',monospace}" +
		".alloc .is li{padding:0}.alloc .is li::before{content:none}"
	return layout + sheet(false) + "@media screen and (prefers-color-scheme:dark){" + sheet(true) + "}"
}
