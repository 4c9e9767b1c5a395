package export

import (
	"fmt"
	"slices"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
)

// OTLP writes the stacks as OpenTelemetry's signal for profiles, a ProfilesData of its version v1development: a
// resource for each process whose stacks were read, with a profile of wall time and one of time on a CPU. The names
// of attributes are those of OpenTelemetry's semantic conventions where these have one.
func OTLP(r *report.View) ([]byte, error) {
	d := newDictionary()
	d.addFrames(framesOf(r))
	data := &profiles.ProfilesData{Dictionary: &d.ProfilesDictionary}
	for p := range r.Processes {
		if list := d.profilesOf(r, p); list != nil {
			data.ResourceProfiles = append(data.ResourceProfiles, &profiles.ResourceProfiles{
				Resource: &resource.Resource{Attributes: resourceOf(r, p)},
				ScopeProfiles: []*profiles.ScopeProfiles{{
					Scope:    &common.InstrumentationScope{Name: clean(r.Generator.Name), Version: clean(r.Generator.Version)},
					Profiles: list,
				}},
			})
		}
	}
	out, err := proto.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("write the OTLP profile: %w", err)
	}
	return out, nil
}

// resourceOf is what is known of a process.
func resourceOf(r *report.View, process int) []*common.KeyValue {
	p := &r.Processes[process]
	target := &r.Targets[p.Target]
	attributes := []*common.KeyValue{
		{Key: "service.name", Value: text(title(r))},
		{Key: "process.pid", Value: number(int64(p.PID))},
		{Key: "process.runtime.name", Value: text("cpython")},
		{Key: "omni_perf.role", Value: text(clean(p.Role))},
	}
	add := func(key string, value *common.AnyValue) {
		attributes = append(attributes, &common.KeyValue{Key: key, Value: value})
	}
	if target.PythonVersion != "" {
		add("process.runtime.version", text(clean(target.PythonVersion)))
	}
	if name := r.Hosts[p.Host].Name; name != nil {
		add("host.name", text(clean(*name)))
	}
	if p.Rank != nil {
		add("omni_perf.rank", number(int64(*p.Rank)))
	}
	if target.Cell != nil && target.Cell.ExecutionCount != nil {
		add("omni_perf.cell", number(int64(*target.Cell.ExecutionCount)))
	}
	return attributes
}

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}}
}

func number(n int64) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
}

// profilesOf are a process's profiles: of wall time and of time on a CPU; none where no stack was read.
func (d *dictionary) profilesOf(r *report.View, process int) []*profiles.Profile {
	period := &profiles.ValueType{TypeStrindex: d.text("wall"), UnitStrindex: d.text("nanoseconds")}
	profileOf := func(what string) *profiles.Profile {
		return &profiles.Profile{
			SampleType:   &profiles.ValueType{TypeStrindex: d.text(what), UnitStrindex: d.text("nanoseconds")},
			TimeUnixNano: uint64(max(r.StartedAt.UnixNano(), 0)), DurationNano: uint64(r.DurationNS),
			PeriodType: period, Period: r.Target().Sampling.Interval(r.DurationNS),
		}
	}
	wall, cpu := profileOf("wall"), profileOf("cpu")
	for t := range r.Threads {
		if r.Threads[t].Process != process {
			continue
		}
		name := d.attribute("thread.name", text(clean(r.Threads[t].Name)))
		id := d.attribute("thread.id", number(int64(r.Threads[t].NativeID)))
		for _, s := range samplesOf(r, t, nil) {
			stack := d.stack(r, s.node)
			attributes := []int32{name, id, d.attribute("omni_perf.state", text(s.state.String()))}
			add := func(to *profiles.Profile, value int64) {
				to.Samples = append(to.Samples, &profiles.Sample{
					StackIndex: stack, AttributeIndices: attributes, Values: []int64{value},
				})
			}
			add(wall, s.wall)
			if s.cpu > 0 {
				add(cpu, s.cpu)
			}
		}
	}
	if len(wall.Samples) == 0 {
		return nil
	}
	return []*profiles.Profile{wall, cpu}
}

// dictionary has the tables that all profiles share. The first entry of each is empty: index 0 means none.
type dictionary struct {
	profiles.ProfilesDictionary
	texts      map[string]int32
	attributes map[string]int32
	stacks     map[int32]int32 // by node
}

func newDictionary() *dictionary {
	d := &dictionary{texts: map[string]int32{"": 0}, attributes: map[string]int32{}, stacks: map[int32]int32{0: 0}}
	d.StringTable = []string{""}
	d.MappingTable = []*profiles.Mapping{{}}
	d.LocationTable = []*profiles.Location{{}}
	d.FunctionTable = []*profiles.Function{{}}
	d.LinkTable = []*profiles.Link{{TraceId: make([]byte, 16), SpanId: make([]byte, 8)}}
	d.AttributeTable = []*profiles.KeyValueAndUnit{{}}
	d.StackTable = []*profiles.Stack{{}}
	return d
}

// addFrames makes a location of each frame, at its index and one.
func (d *dictionary) addFrames(frames []frame) {
	python := d.attribute("profile.frame.type", text("cpython"))
	type function struct {
		name, file string
		firstLine  int
	}
	functions := make(map[function]int32)
	for _, f := range frames {
		key := function{f.function, f.file, f.firstLine}
		at, ok := functions[key]
		if !ok {
			at = int32(len(d.FunctionTable))
			functions[key] = at
			name := d.text(f.function)
			d.FunctionTable = append(d.FunctionTable, &profiles.Function{
				NameStrindex: name, SystemNameStrindex: name, FilenameStrindex: d.text(f.file), StartLine: int64(f.firstLine),
			})
		}
		d.LocationTable = append(d.LocationTable, &profiles.Location{
			Lines: []*profiles.Line{{FunctionIndex: at, Line: int64(f.line)}}, AttributeIndices: []int32{python},
		})
	}
}

// stack is the index of a node's stack.
func (d *dictionary) stack(r *report.View, node int32) int32 {
	at, ok := d.stacks[node]
	if !ok {
		at = int32(len(d.StackTable))
		d.stacks[node] = at
		frames := r.Stack(node, maxDepth)
		slices.Reverse(frames) // leaf first
		stack := &profiles.Stack{LocationIndices: make([]int32, len(frames))}
		for i, f := range frames {
			stack.LocationIndices[i] = int32(f + 1)
		}
		d.StackTable = append(d.StackTable, stack)
	}
	return at
}

// text is the index of a string.
func (d *dictionary) text(s string) int32 {
	at, ok := d.texts[s]
	if !ok {
		at = int32(len(d.StringTable))
		d.texts[s] = at
		d.StringTable = append(d.StringTable, s)
	}
	return at
}

// attribute is the index of a key with its value.
func (d *dictionary) attribute(key string, value *common.AnyValue) int32 {
	name := fmt.Sprintf("%s %T %q %d", key, value.Value, value.GetStringValue(), value.GetIntValue())
	at, ok := d.attributes[name]
	if !ok {
		at = int32(len(d.AttributeTable))
		d.attributes[name] = at
		d.AttributeTable = append(d.AttributeTable, &profiles.KeyValueAndUnit{KeyStrindex: d.text(key), Value: value})
	}
	return at
}
