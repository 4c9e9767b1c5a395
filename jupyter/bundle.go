package jupyter

import (
	"encoding/json"
	"fmt"
)

// Bundle is the content of a display_data message: MIME types to what each
// front end may show.
type Bundle struct {
	Data      map[string]any `json:"data"`
	Metadata  map[string]any `json:"metadata"`
	Transient map[string]any `json:"transient"`
}

// NewBundle makes the bundle of one display: html for notebooks, plain for
// terminals, screen readers and front ends that show no HTML. The display id, if
// not empty, lets a later update_display_data replace it.
func NewBundle(html, plain []byte, displayID string) Bundle {
	b := Bundle{Data: map[string]any{"text/plain": string(plain)}, Metadata: map[string]any{}, Transient: map[string]any{}}
	if len(html) > 0 {
		b.Data["text/html"] = string(html)
	}
	if displayID != "" {
		b.Transient["display_id"] = displayID
	}
	return b
}

// Size is what the bundle adds to a saved notebook, in bytes.
func (b Bundle) Size() int {
	text, err := json.Marshal(b.Data)
	if err != nil {
		return 0 // Parts reports it
	}
	return len(text)
}

// Parts marshals the three parts of the content.
func (b Bundle) Parts() (data, metadata, transient string, err error) {
	var out [3]string
	for i, part := range []map[string]any{b.Data, b.Metadata, b.Transient} {
		text, err := json.Marshal(part)
		if err != nil {
			return "", "", "", fmt.Errorf("display bundle: %w", err)
		}
		out[i] = string(text)
	}
	return out[0], out[1], out[2], nil
}

// Place says where a bundle is shown.
type Place struct {
	Form   string // "notebook" or "terminal"
	Theme  string // "", "light" or "dark"
	Folded bool   // recorded without being asked for: a closed headline
	Whole  bool   // asked for by itself: the chart with all that opens it, however short the cell
}
