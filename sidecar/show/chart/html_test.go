package chart

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/show/viewer"
	"github.com/omni-perf/omni-perf/sidecar/testkit/requirement"
	"github.com/omni-perf/omni-perf/sidecar/testkit/sketch"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// The limits a notebook's size rests on, for the worst reports there are.
func TestSizesAreBounded(t *testing.T) {
	all := sketch.Samples()
	all["huge names"] = hugeNames()
	for name, r := range all {
		full, err := HTML(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		folded, err := Folded(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := Text(r, 200)
		most := 450_000
		if r.DurationNS <= 10e9 {
			most = 160_000
		}
		if n := len(full) + len(text); n > most || len(text) > 40_000 {
			t.Errorf("%s: bundle of %d bytes, %d of them text, want at most %d", name, n, len(text), most)
		}
		if n := base64.StdEncoding.EncodedLen(len(pictureIn(t, full))); n > 60_000 {
			t.Errorf("%s: an image of %d bytes", name, n)
		}
		if len(folded) > 60_000 {
			t.Errorf("%s: folded chart of %d bytes", name, len(folded))
		}
		// Where names alone are more, there is the picture.
		if data := payloads.FindSubmatch(folded); data == nil && name != "huge names" || data != nil && len(data[2]) > 20_000 {
			t.Errorf("%s: a folded chart without data, or with more than 20 kB of it", name)
		}
	}
}

// Ten seconds of ordinary Python at 1 kHz are carried as they were recorded; an hour is thinned.
func TestAnOutputCarriesTheReport(t *testing.T) {
	for name, r := range sketch.Samples() {
		html, err := HTML(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := documentIn(t, html)
		if r.DurationNS <= 10e9 && len(got.Spans.Node) != len(r.Spans.Node) {
			t.Errorf("%s: %d of %d spans", name, len(got.Spans.Node), len(r.Spans.Node))
		}
		if bytes.Contains(html, []byte(" id=")) && name != "ugly" {
			t.Errorf("%s: the fragment has ids of its own", name)
		}
		for i, l := range got.Chart.Lanes {
			switch {
			case l.Kind == "track" && (l.Index < 0 || l.Index >= len(got.Tracks)),
				(l.Kind == "flame" || l.Kind == "thread") && l.Index >= len(got.Threads),
				l.Kind == "lines" && l.Index >= len(got.Files):
				t.Errorf("%s: lane %d is %+v, of nothing", name, i, l)
			}
		}
		for _, h := range got.Hosts {
			if h.Name != nil {
				t.Errorf("%s: a notebook that is shown to others names the machine %s", name, *h.Name)
			}
		}
	}
}

// hugeNames has as much text of many bytes as a report can hold.
func hugeNames() *report.View {
	r := sketch.LongCell(20_000)
	long := strings.Repeat("名前\u0301&", 4000)
	for i := range r.Frames {
		f := &r.Frames[i]
		f.Function, f.File = f.Function+long, f.File+long
	}
	for i := range r.CellLines {
		r.CellLines[i].Text = long
	}
	for i := range r.Functions {
		r.Functions[i].Name, r.Functions[i].File = long, long
	}
	for range 100 {
		r.Findings = append(r.Findings, sketch.Finding{Text: long, Hint: long, Code: long, File: long, Line: 1})
		r.Notes = append(r.Notes, long+": "+long)
		r.Regions = append(r.Regions, report.Region{Name: long, TotalNS: 1e9})
	}
	r.Headline, r.Name, r.Method = long, long, long
	return r.View()
}

func pictureIn(t *testing.T, page []byte) []byte {
	t.Helper()
	m := regexp.MustCompile(`src="data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)"`).FindSubmatch(page)
	if m == nil {
		t.Fatal("no image")
	}
	svg, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return svg
}

func TestHTMLHoldsTheImageAndSaysIt(t *testing.T) {
	page, err := HTML(sketch.TrainingCell().View(), scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	elements(t, pictureIn(t, page))
	if want := `alt="Cell [7], 13.4 s, GPU 0 busy 36 %, idle 8.6 s. The GPU waited 6.5 of 13.4 s for data, loaded in the training&#39;s own thread in line 3.`; !bytes.Contains(page, []byte(want)) {
		t.Errorf("the image has no alternative text %q", want)
	}
}

func TestFoldedIsClosedAndSaysTheHeadline(t *testing.T) {
	page, err := Folded(sketch.EightGPUs().View(), scene.Options{})
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(page), "</summary>")
	for _, want := range []string{"<details><summary", "Cell [6]", "8 GPUs busy 50 %", "DataParallel copies serially", "simulated GPU"} {
		if !strings.Contains(head, want) {
			t.Errorf("the summary does not say %q: %s", want, head)
		}
	}
}

// chromium runs a page in a real browser and returns its document afterwards.
func chromium(t *testing.T, page string) string {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		requirement.Missing(t, requirement.Chromium, "no Chromium on PATH")
	}
	if testing.Short() {
		t.Skip("starts a browser")
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return string(out)
}

// In a trusted page the picture is inline, several share the page, running the
// script again changes nothing; without scripts the image stays.
func TestScriptSwapsTheImage(t *testing.T) {
	var page strings.Builder
	page.WriteString(`<!doctype html><meta charset="utf-8"><body data-jp-theme-light="false">`)
	for _, r := range []*report.View{sketch.TrainingCell().View(), sketch.UglyNames().View(), sketch.CpuCell().View()} {
		html, err := HTML(r, scene.Options{})
		if err != nil {
			t.Fatal(err)
		}
		page.Write(html)
	}
	page.WriteString(`<script>
		for (const old of document.querySelectorAll("div script")) { // as a front end does on reload
			const again = document.createElement("script"); again.textContent = old.textContent; old.replaceWith(again)
		}
		const svgs = document.querySelectorAll("div > svg"), colours = [...svgs].map(s => getComputedStyle(s.querySelector(".tp")).fill)
		document.body.append("RESULT " + JSON.stringify({
			svgs: svgs.length, images: document.images.length, titles: svgs[0].querySelectorAll("title").length,
			ids: new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size, colours: [...new Set(colours)],
			scripts: document.querySelectorAll("svg script").length }))
	</script>`)
	_, result, ok := strings.Cut(chromium(t, page.String()), `RESULT {"svgs":`)
	if !ok {
		t.Fatal("the page's script did not run to its end")
	}
	result, _, _ = strings.Cut(`{"svgs":`+result, "</body>")
	var got struct {
		SVGs, Images, Titles, IDs, Scripts int
		Colours                            []string
	}
	if err := json.NewDecoder(strings.NewReader(result)).Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, result)
	}
	if got.SVGs != 3 || got.Images != 0 || got.IDs != 3 || got.Titles < 50 || got.Scripts != 0 {
		t.Errorf("got %+v", got)
	}
	if len(got.Colours) != 1 || got.Colours[0] != "rgb(236, 236, 238)" {
		t.Errorf("a dark page shows text in %v", got.Colours)
	}
}

// The script is part of saved notebooks, whose other outputs anybody may have written.
func TestScriptTouchesNothingButItsOwnImage(t *testing.T) {
	const evil = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:h="http://www.w3.org/1999/xhtml" id="evil" onload="hit('onload')" width="20" height="20">
		<script>hit("script")</script><h:script>hit("html script")</h:script><h:img src="x:" onerror="hit('img')"/>
		<foreignObject><h:iframe src="javascript:parent.hit('iframe')"/></foreignObject>
		<a xlink:href="javascript:hit('link')" href="javascript:hit('link')"><rect ONCLICK="hit('click')" onclick="hit('click')" width="9" height="9"/></a>
		<use href="data:image/svg+xml,x"/><use href="#own"/><set attributeName="href" to="javascript:hit('set')"/><animate attributeName="href" values="javascript:hit('animate')"/></svg>`
	image := func(media, svg string) string {
		return `<img src="data:` + media + `;base64,` + base64.StdEncoding.EncodeToString([]byte(svg)) + `">`
	}
	const good = `<svg xmlns="http://www.w3.org/2000/svg" id="good"/>`
	const html5 = `<svg xmlns="http://www.w3.org/1999/xhtml"><iframe src="javascript:parent.hit('html root')"/></svg>`
	page := `<!doctype html><meta charset="utf-8"><script>window.hits = []; function hit(what) { hits.push(what) }</script><body>`
	for _, script := range []string{viewer.PictureScript, viewer.Script} {
		const data = `<script type="application/octet-stream;base64">omni_perf 9 x:X` + "\nH4sI</script>"
		script = data + "<script>" + script + "</script>"
		page += `<div id="another"><div>` + image("image/svg+xml", good) + `</div><div>` + script + `</div></div>` + // of another element
			`<div id="type">` + image("text/html", good) + script + `</div>` +
			`<div id="remote"><img src="https://example.invalid/x.svg">` + script + `</div>` +
			`<div id="html">` + image("image/svg+xml", html5) + script + `</div>` +
			`<div id="own">` + image("image/svg+xml", good) + script + `</div>` +
			`<div id="hostile">` + image("image/svg+xml", evil) + script + `</div>`
	}
	page +=
		`<script>
		const swapped = [...document.querySelectorAll("div")].filter(d => d.querySelector("svg")).map(d => d.id)
		const left = [...document.querySelectorAll("#evil, #evil *")].map(e => e.localName + [...e.attributes].map(a => " " + a.name + (/href/.test(a.name) ? "=" + a.value : "")).join(""))
		document.querySelector("#evil rect").dispatchEvent(new MouseEvent("click", {bubbles: true}))
		document.title = JSON.stringify({swapped, left, hits})
		</script>`
	_, result, _ := strings.Cut(chromium(t, page), "<title>")
	result, _, _ = strings.Cut(result, "</title>")
	var got struct{ Swapped, Left, Hits []string }
	if err := json.Unmarshal([]byte(html.UnescapeString(result)), &got); err != nil {
		t.Fatalf("%v: %q", err, result)
	}
	if want := slices.Repeat([]string{"own", "hostile"}, 2); !slices.Equal(got.Swapped, want) {
		t.Errorf("swapped in %v, want %v", got.Swapped, want)
	}
	if len(got.Hits) > 0 {
		t.Errorf("these ran: %v", got.Hits)
	}
	want := slices.Repeat([]string{"svg xmlns xmlns:h xmlns:xlink id width height", "a", "rect width height", "use", "use href=#own"}, 2)
	if !slices.Equal(got.Left, want) {
		t.Errorf("left: %q, want %q", got.Left, want)
	}
}

// Text is measured here by tables: no browser may need more room than they say.
func TestBrowserNeedsNoMoreRoom(t *testing.T) {
	s := lay(digestOf(sketch.TrainingCell().View()), scene.DefaultWidth, fullDetail)
	type measured struct {
		S    string  `json:"s"`
		W    float64 `json:"w"`
		Font string  `json:"font"`
	}
	var texts []measured
	for _, l := range append(s.AllTexts(), lay(digestOf(sketch.UglyNames().View()), scene.DefaultWidth, fullDetail).AllTexts()...) {
		for _, family := range map[scene.Face][]string{scene.Sans: {"DejaVu Sans", "Verdana", "Liberation Sans"}, scene.Bold: {"DejaVu Sans", "Verdana"}, scene.Mono: {"DejaVu Sans Mono", "Liberation Mono"}}[l.Face] {
			weight := ""
			if l.Face == scene.Bold {
				weight = "bold "
			}
			texts = append(texts, measured{l.S, math.Ceil(scene.WidthOf(l.S, l.Size, l.Face)*100) / 100, weight + jsonNumber(l.Size) + `px "` + family + `"`})
		}
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	dom := chromium(t, `<!doctype html><meta charset="utf-8"><body><script>
		const c = document.createElement("canvas").getContext("2d"), bad = []
		for (const t of `+string(in)+`) { c.font = t.font; const w = c.measureText(t.s).width; if (w > t.w + 0.5) bad.push(t.font + " " + t.s + " " + w + " > " + t.w) }
		document.body.append("RESULT " + bad.length + " " + bad.slice(0, 5).join("; "))
	</script>`)
	_, result, ok := strings.Cut(dom[strings.LastIndex(dom, "</script>"):], "RESULT ")
	if !ok || !strings.HasPrefix(result, "0 ") {
		t.Errorf("texts wider than thought: %s", result)
	}
}

func jsonNumber(v float64) string {
	b, _ := json.Marshal(v)
	return string(b)
}
