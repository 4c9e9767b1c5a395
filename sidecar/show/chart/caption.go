package chart

import (
	"fmt"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/inhtml"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/labels"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Caption is the text above a picture that another package makes, of a step of a trace
// for instance, in place of what a report says of itself: such a picture has the lanes
// alone; tables and findings are in the page around it.
type Caption struct {
	Title string
	Facts []Fact // after the title
	Line  string // below; the viewer shows there what is selected
}

// Fact is a few words and what they mean.
type Fact struct {
	Text string
	Tone scene.Tone
}

// captioned is the digest of a report under a caption. Of its threads those that do
// something worth seeing are flame charts, the main one first.
func captioned(r *report.View, c *Caption) *digest {
	d := &digest{duration: durationOf(r), own: "script", lanesOnly: true}
	gpus := gpusOf(r)
	histories := historiesOf(r)
	main := r.MainThread()
	d.title = []scene.Phrase{{Text: words.Clean(c.Title, 80), Tone: scene.Plain, Face: scene.Bold}}
	for _, f := range c.Facts {
		face := scene.Bold
		if f.Tone == scene.Muted {
			face = scene.Sans
		}
		d.title = append(d.title, scene.Phrase{Text: words.Clean(f.Text, 120), Tone: f.Tone, Face: face})
	}
	d.finding = []scene.Phrase{{Text: words.Clean(c.Line, 300), Tone: scene.Muted, Face: scene.Sans}}
	d.summary = scene.Join(d.title, ", ")
	d.identity = inhtml.Identity(r)
	d.tracks = tracksOf(r, gpus, d.duration)
	for i := range d.tracks { // how a trace knows is no news in a page about one
		t := &d.tracks[i]
		t.tall, t.aside, t.sources = false, "", t.sources[:min(len(t.sources), 1)]
	}
	lanes, more := lanesOf(r, main, histories, nil, d.duration)
	fns := labels.FunctionsOf(r)
	if main >= 0 {
		d.flames = append(d.flames, flameOf(r, fns, main, histories[main]))
	}
	for _, l := range lanes {
		if len(d.flames) < maxFlames && l.strip == nil && computed(l.spans) >= worthFlame*d.duration {
			d.flames = append(d.flames, flameOf(r, fns, l.index, l.spans))
		} else {
			d.threads = append(d.threads, l)
		}
	}
	for _, f := range d.flames {
		f.aside = ""
	}
	d.more = more
	d.streams, d.moreStreams = streamsOf(r, d.duration)
	if len(r.Devices) == 1 {
		for i := range d.streams {
			d.streams[i].name = fmt.Sprintf("stream %d", r.Kernels[d.streams[i].index].Stream)
		}
	}
	d.kinds = map[scene.Paint]string{scene.PaintUser: "your code, annotations", scene.PaintFramework: "operators, libraries", scene.PaintDevice: "runtime calls"}
	return d
}

const (
	// maxFlames bounds the flame charts of a captioned picture: the thread of the
	// training loop, that of the backward pass, one more.
	maxFlames = 3
	// worthFlame is the share of the time from which on a thread is one of them.
	worthFlame = 0.1
)

func computed(spans []span) (seconds float64) {
	for _, s := range spans {
		if s.state.Computes() {
			seconds += s.end - s.start
		}
	}
	return seconds
}

// Figure is a picture with its data, for a page of somebody else's making that holds
// several: each in an element of its own, and after the last one, in an element around
// all, viewer.Script once. Without scripts it is the picture.
type Figure struct {
	HTML   string
	Styles []string // what the style sheets in it say, for the hashes of a policy
}

// Bounds of a Figure, in bytes.
const (
	FigurePicture = 110 << 10
	FigureData    = 200 << 10 // compressed; a third more in the page
)

// Embed draws a captioned report for a page.
func Embed(r *report.View, c *Caption, o scene.Options) (*Figure, error) {
	if r == nil {
		return nil, errNoReport
	}
	o = o.WithDefaults()
	o.Inline = true
	d := captioned(r, c)
	drawn, svg, err := drawWithin(FigurePicture, d, o, fullDetail)
	if err != nil {
		return nil, err
	}
	payload, err := payloadWithin(FigureData, r, d, drawn)
	if err != nil {
		return nil, err
	}
	return &Figure{HTML: `<div>` + string(svg) + inhtml.Data(payload) + `</div>`, Styles: slices.Compact(inhtml.Styles(svg))}, nil
}

// views are the ways to look at the report in a chart with this digest.
func (d *digest) views(r *report.View) []viewer.View {
	if d.lanesOnly {
		return []viewer.View{viewer.Timeline, viewer.Flame}
	}
	return viewsOf(r)
}
