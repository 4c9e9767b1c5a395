package program

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/live/panel"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/live"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Displays is the Audience of a notebook that follows another one: a line of JSON for each
// look, the data of a display that takes the place of the one before. Messages are written
// to it too. One goroutine.
type Displays struct {
	To io.Writer

	name    string
	now     *live.Now
	resting bool
	notes   []string
}

// Watch names what is followed.
func (d *Displays) Watch(name string) {
	d.name = name
	d.write()
}

// Look shows a look.
func (d *Displays) Look(now *live.Now) {
	d.now, d.resting = now, false
	d.write()
}

// Rest says, once, that nothing runs.
func (d *Displays) Rest() {
	if !d.resting {
		d.resting = true
		d.write()
	}
}

// Note shows a sentence below.
func (d *Displays) Note(sentence string) {
	d.notes = append(d.notes, words.Clean(sentence, 4*words.MaxName))
	d.notes = d.notes[max(len(d.notes)-notesShown, 0):]
	d.write()
}

// Write shows messages below.
func (d *Displays) Write(text []byte) (int, error) {
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\n"), "\n") {
		d.Note(strings.TrimPrefix(line, "omni-perf: "))
	}
	return len(text), nil
}

func (d *Displays) write() {
	if d.name == "" {
		return
	}
	const small = `<div style="font-size:12px;opacity:.75">%s</div>`
	page, text := fmt.Sprintf(small, html.EscapeString(words.Clean(d.name, words.MaxName))), []string{d.name}
	switch {
	case d.resting:
		page, text = page+`<div>idle: no cell runs</div>`, append(text, "idle: no cell runs")
	case d.now != nil:
		const columns = 100
		page, text = page+string(panel.HTML(d.now, scene.Auto)), append(text, panel.Text(d.now, columns, false)...)
	}
	for _, n := range d.notes {
		page += fmt.Sprintf(small, html.EscapeString(n))
	}
	text = slices.Concat(text, d.notes)
	line, err := json.Marshal(map[string]string{"text/html": "<div>" + page + "</div>", "text/plain": strings.Join(text, "\n")})
	if err == nil {
		_, _ = d.To.Write(append(line, '\n'))
	}
}
