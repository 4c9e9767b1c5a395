package kineto

import (
	"fmt"
	"strings"
	"testing"
)

// pairedEvents are a kernel and two operators, one in the other, that begin and end.
const pairedEvents = `
	{"ph":"B","cat":"cpu_op","name":"outer","pid":1,"tid":2,"ts":1,"args":{"External id":4}},
	{"ph":"B","cat":"kernel","name":"k","pid":0,"tid":7,"ts":2,"args":{"stream":7,"correlation":9}},
	{"ph":"B","cat":"cpu_op","name":"inner \u00e9","pid":1,"tid":2,"ts":3},
	{"ph":"E","pid":1,"tid":2,"ts":5},
	{"ph":"E","cat":"kernel","name":"k","pid":0,"tid":7,"ts":6.5},
	{"ph":"E","cat":"cpu_op","name":"outer","pid":1,"tid":2,"ts":8}`

// TestPairsAreCompleteEvents: what begins and ends on a thread is an event with a duration.
func TestPairsAreCompleteEvents(t *testing.T) {
	p := mustRead(t, `{"traceEvents":[`+pairedEvents+`]}`)
	tr := p.t
	if len(p.warnings) > 0 {
		t.Errorf("got warnings %v", p.warnings)
	}
	got := fmt.Sprint(tr.Device.Start, tr.Device.Dur, tr.Device.Stream, tr.Device.Correlation,
		tr.Text(tr.Ops.Name[0])+" "+tr.Text(tr.Ops.Name[1])+" ", tr.Ops.Start, tr.Ops.Dur, tr.Ops.External[1], tr.First, tr.Last)
	if want := "[2000] [4500] [7] [9]inner é outer [3000 1000] [2000 7000] 4 1000 8000"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPairsNeedNoCategory: other tools write none.
func TestPairsNeedNoCategory(t *testing.T) {
	p := mustRead(t, `[{"ph":"B","name":"a","tid":1,"ts":1},{"ph":"E","tid":1,"ts":3}]`)
	if o := p.t.Ops; o.Len() != 1 || o.Class[0] != OpAnnotation || o.Dur[0] != 2000 {
		t.Errorf("got %+v", o)
	}
}

// TestPairsOfWhichOneIsMissing are counted, where the first of them is.
func TestPairsOfWhichOneIsMissing(t *testing.T) {
	for text, want := range map[string]string{
		`[{"ph":"E","tid":1,"ts":1}]`:                           "byte 1: events that begin and do not end",
		`[{"ph":"B","cat":"cpu_op","name":"a","tid":1,"ts":1}]`: "byte 1: events that begin and do not end",
		`[{"ph":"B","name":"a","tid":1,"ts":1},{"ph":"B","name":"b","tid":1,"ts":2},{"ph":"E","name":"a","tid":1,"ts":3}]`:               "byte 75: events that begin and do not end",
		`[{"ph":"B","name":"a","tid":1,"ts":1},{"ph":"E","name":"a","tid":2,"ts":2},{"ph":"E","name":"c","tid":1,"ts":2}]`:               "(3 times, first here)",
		`[{"ph":"B","cat":"cpu_op","name":"a","tid":1},{"ph":"E","tid":1,"ts":2}]`:                                                       "(2 times, first here)",
		`[{"ph":"B","cat":"cpu_op","name":"a","tid":1,"ts":5},{"ph":"E","name":"a","tid":1,"ts":3}]`:                                     "negative duration",
		`[` + strings.Repeat(`{"ph":"B","cat":"cpu_op","name":"`+strings.Repeat("x", 1<<20)+`","tid":1,"ts":1},`, maxOpen>>20+2) + `{}]`: "(66 times, first here)",
	} {
		p := mustRead(t, text)
		if got := fmt.Sprint(p.warnings); !strings.Contains(got, want) {
			t.Errorf("%.120s: got %s, want %q", text, got, want)
		}
		if p.rows != nil && p.rows.pairs.size != 0 {
			t.Errorf("%.120s: events stay open", text)
		}
	}
}
