package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// A page needs nothing else: were anything in it not escaped, its policy would keep it
// from running, from styling and from fetching.
func TestThePageRunsOnlyOurScript(t *testing.T) {
	page, err := Page(sketch.UglyNames().View(), scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindSubmatch(page)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	for _, want := range []string{"default-src 'none'", "script-src " + viewer.Allow(viewer.Script) + ";", "base-uri 'none'"} {
		if !strings.Contains(string(policy[1]), want) {
			t.Errorf("the policy %q does not say %q", policy[1], want)
		}
	}
	if bytes.Contains(policy[1], []byte("unsafe")) {
		t.Errorf("the policy allows what is unsafe: %q", policy[1])
	}
	if n := bytes.Count(page, []byte("<script")); n != 2 {
		t.Errorf("%d script elements, want the data and the viewer", n)
	}
	const breakIn = `<body><script>document.title = "broken in"</script><img src="data:," onerror="document.title = 'broken in'">` +
		`<svg onload="document.title = 'broken in'"></svg>`
	broken := strings.Replace(string(page), "<body>", breakIn, 1)
	dom := chromium(t, broken)
	if !strings.Contains(dom, "onerror=") || strings.Contains(dom, "<title>broken in") {
		t.Error("what was put into the page has run")
	}
	if !strings.Contains(dom, `class="o-head"`) {
		t.Error("our own script has not run")
	}
	if dom := chromium(t, "<title></title>"+breakIn); !strings.Contains(dom, "<title>broken in") {
		t.Error("it would not have run without the policy: the test shows nothing")
	}
}

// What the viewer reads is the whole report, and the picture's geometry.
func TestThePageHoldsTheWholeReport(t *testing.T) {
	for name, r := range sketch.Samples() {
		page, err := Page(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := documentIn(t, page)
		if len(got.Spans.Node) != len(r.Spans.Node) || got.DurationNS != r.DurationNS || got.Document.Document != report.Kind {
			t.Errorf("%s: %d spans of %d ns, want %d of %d", name, len(got.Spans.Node), got.DurationNS, len(r.Spans.Node), r.DurationNS)
		}
		s := lay(digestOf(r), scene.DefaultWidth, fullDetail)
		if len(got.Chart.Lanes) != len(s.Lanes) || len(got.Chart.Threads) != len(r.Threads) || len(got.Chart.Legend) != len(s.Legend) {
			t.Errorf("%s: %d lanes, %d threads, %d legend entries", name, len(got.Chart.Lanes), len(got.Chart.Threads), len(got.Chart.Legend))
		}
		for i, l := range got.Chart.Lanes {
			if want := s.Lanes[i]; l.Y0 != want.Y0 || l.Y1 != want.Y1 || l.Index < 0 || l.Kind == "flame" && l.Rows != len(want.Rows) {
				t.Errorf("%s: lane %d is %+v, want it at %v", name, i, l, want.Box)
			}
			if l.Kind == "track" && got.Tracks[l.Index].ID == "" {
				t.Errorf("%s: lane %d is of no track", name, i)
			}
		}
	}
}

// A page of a few seconds is for sending by mail: the picture and the viewer bound it, the data adds to it.
func TestThePageIsSmall(t *testing.T) {
	page, err := Page(sketch.TrainingCell().View(), scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > 300_000 {
		t.Errorf("a page of %d bytes", len(page))
	}
	t.Logf("%d bytes", len(page))
}

var payloads = regexp.MustCompile(`<script type="application/octet-stream;base64">omni_perf 2 (timeline:Timeline [^\n]*)\n([A-Za-z0-9+/=]+)</script>`)

// payloadIn is the data in an output, as it is written there.
func payloadIn(t *testing.T, html []byte) string {
	t.Helper()
	payload := payloads.FindSubmatch(html)
	if payload == nil {
		t.Fatal("no data")
	}
	return string(payload[2])
}

// documentIn is what a page or an output carries for the viewer.
func documentIn(t *testing.T, html []byte) document {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(payloadIn(t, html))
	if err != nil {
		t.Fatal(err)
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.NewDecoder(text).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestThePageHasTheTablesThatTheViewerDoesNotMake(t *testing.T) {
	r := sketch.TrainingCell().View()
	page, err := Page(r, scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var has []string
	for _, table := range documentIn(t, page).Chart.Tables {
		has = append(has, table.Heading)
		if len(table.Rows) == 0 || table.Rows[0].Figure == "" {
			t.Errorf("%s: %+v", table.Heading, table.Rows)
		}
	}
	for _, table := range digestOf(r).tables {
		made := strings.HasPrefix(table.heading, "Where ") || table.heading == "Busiest functions" || strings.HasPrefix(table.heading, "Threads")
		if slices.Contains(has, table.heading) == made {
			t.Errorf("%s: the viewer makes it: %v; the page has %q", table.heading, made, has)
		}
	}
	if !slices.Contains(has, "Steps") {
		t.Errorf("no table of steps: %q", has)
	}
}

func TestAPageTakesTheWidthOfTheWindow(t *testing.T) {
	page, err := Page(sketch.TrainingCell().View(), scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "@media screen and (min-width:1260px){body{max-width:none}.opv{max-width:none!important}}"; !bytes.Contains(page, []byte(want)) {
		t.Errorf("a wide window stays empty beside the picture: the page has no %q", want)
	}
}
