package export

import (
	"strconv"
	"strings"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

func valueOf(v *common.AnyValue) string {
	if s, ok := v.Value.(*common.AnyValue_StringValue); ok {
		return s.StringValue
	}
	return strconv.FormatInt(v.GetIntValue(), 10)
}

// readOTLP returns "pid|leaf:line,caller:line|thread|state" → wall and CPU time. It follows all indices.
func readOTLP(t *testing.T, b []byte) map[string][2]int64 {
	t.Helper()
	var data profiles.ProfilesData
	if err := proto.Unmarshal(b, &data); err != nil {
		t.Fatal(err)
	}
	d := data.Dictionary
	empty := d.MappingTable[0].String() + d.LocationTable[0].String() + d.FunctionTable[0].String() + d.StackTable[0].String()
	if d.StringTable[0]+empty != "" || d.AttributeTable[0].Value != nil || len(d.LinkTable) != 1 {
		t.Error("the first entry of a table is not empty")
	}
	attributes := func(indices []int32) map[string]string {
		values := make(map[string]string)
		for _, i := range indices {
			a := d.AttributeTable[i]
			values[d.StringTable[a.KeyStrindex]] = valueOf(a.Value)
		}
		return values
	}
	got := make(map[string][2]int64)
	for _, r := range data.ResourceProfiles {
		resource := make(map[string]string)
		for _, a := range r.Resource.Attributes {
			resource[a.Key] = valueOf(a.Value)
		}
		for i, p := range r.ScopeProfiles[0].Profiles {
			what, unit := d.StringTable[p.SampleType.TypeStrindex], d.StringTable[p.SampleType.UnitStrindex]
			if what != []string{"wall", "cpu"}[i] || unit != "nanoseconds" {
				t.Errorf("profile %d is of %s in %s", i, what, unit)
			}
			for _, s := range p.Samples {
				var stack []string
				for _, l := range d.StackTable[s.StackIndex].LocationIndices {
					line := d.LocationTable[l].Lines[0]
					name := d.StringTable[d.FunctionTable[line.FunctionIndex].NameStrindex]
					stack = append(stack, name+":"+strconv.FormatInt(line.Line, 10))
				}
				a := attributes(s.AttributeIndices)
				of := []string{resource["process.pid"], strings.Join(stack, ","), a["thread.name"], a["omni_perf.state"]}
				key := strings.Join(of, "|")
				times := got[key]
				times[i] += s.Values[0]
				got[key] = times
			}
		}
	}
	return got
}

func TestOTLP(t *testing.T) {
	d := small()
	host, rank := "node7", 3
	d.Hosts[0].Name, d.Processes[0].Rank = &host, &rank
	b, err := OTLP(check(t, d))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]int64{
		"100|load:12,Cell [7]:1|MainThread|python":  {250e6, 250e6},
		"100|load:12,Cell [7]:1|MainThread|io":      {750e6, 0},
		"100|Cell [7]:2|MainThread|python":          {125e6, 125e6},
		"100|fit:40,Cell [7]:2|MainThread|native":   {750e6, 750e6},
		"200|load:12,Cell [7]:1|MainThread|waiting": {1000e6, 0},
	}
	got := readOTLP(t, b)
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%q: got %v, want %v", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	var data profiles.ProfilesData
	if err := proto.Unmarshal(b, &data); err != nil {
		t.Fatal(err)
	}
	resource := make(map[string]string)
	for _, a := range data.ResourceProfiles[0].Resource.Attributes {
		resource[a.Key] = valueOf(a.Value)
	}
	for key, want := range map[string]string{
		"service.name": "Cell [7]", "host.name": "node7", "process.pid": "100", "omni_perf.rank": "3", "omni_perf.cell": "7",
		"process.runtime.version": "3.12.1",
	} {
		if resource[key] != want {
			t.Errorf("%s: got %q, want %q", key, resource[key], want)
		}
	}
	p := data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0]
	if p.TimeUnixNano != 1_790_000_000_000_000_005 || p.DurationNano != 2e9 {
		t.Errorf("%d + %d", p.TimeUnixNano, p.DurationNano)
	}
}

// What a report knows of its threads is all in the exports that add up.
func TestTotalsAreTheReports(t *testing.T) {
	r := check(t, small())
	var want [2]int64
	for thread := range r.Threads {
		for _, s := range r.History(thread) {
			if s.Node > 0 {
				want[0] += s.End - s.Start
				if s.State.Computes() {
					want[1] += s.End - s.Start
				}
			}
		}
	}
	sum := func(times map[string][2]int64) (sum [2]int64) {
		for _, t := range times {
			sum[0] += t[0]
			sum[1] += t[1]
		}
		return sum
	}
	otlp, err := OTLP(r)
	if err != nil {
		t.Fatal(err)
	}
	pprof, err := Pprof(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := sum(readOTLP(t, otlp)); got != want {
		t.Errorf("OTLP: got %v, want %v", got, want)
	}
	if got := sum(readPprof(t, pprof)); got != want {
		t.Errorf("pprof: got %v, want %v", got, want)
	}
}

func TestStepsAreALabelOfFewValues(t *testing.T) {
	d := small()
	d.Steps = nil
	for i := range int64(100) {
		d.Steps = append(d.Steps, report.Step{StartNS: 1e8 + i*10e6, EndNS: 1e8 + (i+1)*10e6})
	}
	steps := stepNamesOf(check(t, d), 0)
	total, values := map[string]int64{}, map[string]bool{}
	for name, length := range steps.cut(0, 2e9) {
		total[name] += length
		values[name] = true
	}
	if total[""] != 1e9 || total["0-6"] != 70e6 || total["98-99"] != 20e6 || len(values) > maxStepNames+1 {
		t.Errorf("got %v", total)
	}
	for name, length := range steps.cut(1e8+5e6, 1e8+7e6) {
		if name != "0-6" || length != 2e6 {
			t.Errorf("within a step: %q %d", name, length)
		}
	}
}

func TestPprofOfAProcess(t *testing.T) {
	r := check(t, small())
	b, err := PprofOfProcess(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := readPprofByStep(t, b)
	want := map[string]int64{"load|0": 1000e6, "Cell [7]|1": 125e6, "fit|1": 750e6}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%q: got %v, want %v", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}
