package report_test

import (
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

var documents = flag.Int("documents", 10_000, "damaged documents that TestDamagedDocuments reads")

// use asks a view for everything that a consumer may.
func use(v *report.View) {
	_, _ = v.LineLane()
	_, _ = v.MainFinding(), v.HostTrack("rss")
	if main := v.MainThread(); main >= 0 {
		for _, s := range v.History(main) {
			_ = v.Stack(s.Node, 100)
		}
	}
	for t := range v.Threads {
		_ = v.History(t)
	}
	for f := range v.Functions {
		_ = v.FunctionName(f)
	}
	for i := range v.Files {
		_, _, _ = v.IsCell(i), v.LinesOf(i), v.Text(i, 2)
	}
	for i := range v.Devices {
		_ = v.DeviceTrack(i, "gpu.util")
	}
	for _, f := range v.Findings {
		_ = v.LineText(f.File, f.Line)
	}
	_ = v.Target().Sampling.Interval(v.DurationNS)
}

// useAll also makes it smaller.
func useAll(t *testing.T, v *report.View) {
	use(v)
	e, err := v.Thin(1500)
	if err != nil {
		return // there is no room for that much text
	}
	if len(e.Packed) > 1500 {
		t.Errorf("%d bytes", len(e.Packed))
	}
	again, err := report.Read(e.Packed)
	if err != nil {
		t.Fatalf("a thinned report is damaged: %v\n%+v", err, e.Document)
	}
	use(again)
}

// scalars are the places of numbers, strings and literals in a text.
func scalars(text string) (places [][2]int) {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := i + 1
			for end < len(text)-1 && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			places = append(places, [2]int{i, end + 1})
			i = end + 1
		case strings.IndexByte("-0123456789tfn", c) >= 0:
			end := i
			for end < len(text) && strings.IndexByte(",]}:\n ", text[end]) < 0 {
				end++
			}
			places = append(places, [2]int{i, end})
			i = end
		default:
			i++
		}
	}
	return places
}

var hostile = []string{
	"-1", "0", "1", "2", "3", "7", "255", "65536", "2147483647", "2147483648", "4294967296", "9007199254740992", "9007199254740993",
	"9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e308", "-1e308", "1e-320", "0.5", "1e400",
	"null", "true", "false", `""`, `"x"`, `"\u0000\ud800\u202e"`, `"9999-12-31T23:59:59Z"`, "[]", "[[]]", "[0,0]", "{}", `{"a":[]}`, "[null]", "",
}

// damaged changes a few scalars of a text, or some of its bytes.
func damaged(text string, places [][2]int, r *rand.Rand) string {
	for range 1 + r.IntN(3) {
		if r.IntN(4) > 0 {
			p := places[r.IntN(len(places))]
			if p[1] <= len(text) && p[0] < p[1] {
				text = text[:p[0]] + hostile[r.IntN(len(hostile))] + text[p[1]:]
			}
			continue
		}
		from := r.IntN(len(text))
		to := min(from+r.IntN(8), len(text))
		switch r.IntN(3) {
		case 0:
			text = text[:from] + text[to:]
		case 1:
			text = text[:to] + text[from:]
		default:
			text = text[:from] + string(rune(r.IntN(256))) + text[to:]
		}
		if text == "" {
			return "{"
		}
	}
	return text
}

// Whatever a file holds, it is read or refused, and what is read can be used.
func TestDamagedDocuments(t *testing.T) {
	text, err := json.Marshal(goldens(t)["kernel"].Document)
	if err != nil {
		t.Fatal(err)
	}
	places := scalars(string(text))
	count, workers := *documents/slowdown, runtime.GOMAXPROCS(0)
	var done sync.WaitGroup
	var mu sync.Mutex
	sound := 0
	for w := range workers {
		done.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 11))
			n := 0
			for i := range count / workers {
				v, err := report.Read([]byte(damaged(string(text), places, r)))
				if err != nil {
					continue
				}
				n++
				if use(v); i%64 == 0 {
					useAll(t, v)
				}
			}
			mu.Lock()
			sound += n
			mu.Unlock()
		})
	}
	done.Wait()
	if sound < count/100 || sound > count*9/10 {
		t.Errorf("%d of %d were sound: nothing is tested", sound, count)
	}
}

func FuzzRead(f *testing.F) {
	for _, v := range goldens(f) {
		text, err := json.Marshal(v.Document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		packed, err := report.Pack(v.Document)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if v, err := report.Read(text); err == nil {
			useAll(t, v)
		}
	})
}

func TestWhatIsNoReportOfThisVersionIsRefused(t *testing.T) {
	for text, want := range map[string]error{
		`{"schema_version":1,"generator":"omni_perf 0.1.0"}`: report.ErrOlder,
		`{"document":"omni_perf.report","version":1}`:        report.ErrOlder,
		`{"document":"omni_perf.report","version":3}`:        report.ErrNewer,
		`{"document":"omni_perf.analysis","version":2}`:      report.ErrNoReport,
		`{}`: report.ErrNoReport, `[]`: report.ErrNoReport, ``: report.ErrNoReport, "\x1f\x8b": report.ErrNoReport,
	} {
		if _, err := report.Read([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	if _, err := report.Read([]byte(`{"schema_version":1}`)); !strings.Contains(err.Error(), "recorded by an older version") || !strings.Contains(err.Error(), "record again") {
		t.Errorf("says %q", err)
	}
}

// A document of a later program may know more ids, in another order.
func TestIdsOfOthersAreTranslated(t *testing.T) {
	text, err := json.Marshal(goldens(t)["cell"].Document)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	states := []any{"dreaming", "python", "native", "waiting", "io", "gil", "off", "unknown"}
	document["enumerations"] = map[string]any{"state": states, "code": document["enumerations"].(map[string]any)["code"]}
	spans := document["spans"].(map[string]any)
	column := spans["state"].([]any)
	for i, s := range column {
		column[i] = s.(float64) + 1
	}
	column[0] = 0.0
	for _, table := range []string{"threads", "lines", "function_times"} {
		for _, row := range document[table].([]any) {
			row := row.(map[string]any)
			row["state_ns"] = append([]any{0.0}, row["state_ns"].([]any)...)
		}
	}
	document["nobody knows"] = []any{1}
	text, _ = json.Marshal(document)
	v, err := report.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if h := v.History(0); h[0].State != report.StateUnknown || h[1].State != report.StateIO {
		t.Errorf("states %v and %v", h[0].State, h[1].State)
	}
}
