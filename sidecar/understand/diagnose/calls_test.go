package diagnose

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

func TestPublicNamesLeaveOutALibrarysOwnClasses(t *testing.T) {
	for function, want := range map[string]string{
		"read_csv":                         "read_csv",
		"DataFrame.apply":                  "DataFrame.apply",
		"_BaseKMeans.fit_predict":          "fit_predict",
		"_LocationIndexer.__setitem__":     "__setitem__",
		"Outer._Inner.method":              "Outer.method",
		"_private":                         "_private",
		"Popen.communicate":                "Popen.communicate",
		"_InactiveRpcError._Code.__call__": "__call__",
	} {
		if got := publicName(function); got != want {
			t.Errorf("%s: got %q, want %q", function, got, want)
		}
	}
}

// Idle windows before the first work and after the last tell nothing of the loop.
func TestAModelIsFittedToTheWindowsWithWork(t *testing.T) {
	var d device
	for i, busy := range []float64{0, 0, 0.01, 0.5, 0, 0.9, 0.02, 0} {
		d.windows = append(d.windows, window{timeline.Nanos(i), timeline.Nanos(i + 1), busy})
	}
	got := d.working()
	if len(got) != 3 || got[0].from != 3 || got[2].from != 5 {
		t.Errorf("got %v, want windows 3 to 5", got)
	}
	d.windows = d.windows[:2]
	if got := d.working(); len(got) != 0 {
		t.Errorf("got %v of a device that never worked", got)
	}
}

// A thread that was lost and found again has two entries: the one of which more is
// known is meant.
func TestTheMainThreadIsTheEntryThatWasSeen(t *testing.T) {
	rec := &timeline.Recording{Duration: 10, Threads: []timeline.Thread{
		{NativeID: 7, Main: true, RunsCell: true, Spans: []timeline.Span{{Start: 0, End: 3, Node: timeline.RootNode}}},
		{NativeID: 7, Main: true, RunsCell: true, Spans: []timeline.Span{{Start: 3, End: 10, Node: 1}}},
	}}
	if got := newStacks(rec, NewSource(rec, nil)).responsible(-1); got != &rec.Threads[1] {
		t.Errorf("got the entry with %v", got.Spans)
	}
}

// What asks a database again and again needs fewer queries, not vectors; what slices arrays is in vectors.
func TestAdviceForALineInALoop(t *testing.T) {
	loop := "import sqlite3\n\nfor i in rows:\n    db.execute(query, i)\n    total += i\n    x = numpy.add(x, i)\n    u[1:-1, 1:] = v[:-2, 1:] - i\n"
	for _, c := range []struct {
		line  int
		state timeline.State
		want  Advice
	}{
		{4, timeline.StatePython, FewerQueries}, {5, timeline.StatePython, Vectorise}, {6, timeline.StateNative, NoAdvice}, {7, timeline.StatePython, NoAdvice},
	} {
		rec := scene{acts: []act{one(c.line, "", "", c.state, 0), short(one(3, "", "", timeline.StatePython, 0))}, times: 12, cell: loop}.record()
		d := Run(rec)
		main, ok := d.Main()
		if !ok || d.Findings[main].ID != OneLine || d.Findings[main].Advice != c.want {
			t.Errorf("line %d: got %+v, want advice %q", c.line, d.Findings, c.want)
		}
	}
}

// Arrays compute with numbers: a hint to use them is for no other loop.
func TestVectoriseIsSaidOfArithmeticOnly(t *testing.T) {
	for text, want := range map[string]Advice{
		"total += i * i % 7": Vectorise, "c[i][j] += a[i][k] * b[k][j]": Vectorise, "total += value": Vectorise, "if n % d == 0:": Vectorise,
		"n += 1": NoAdvice, "pass": NoAdvice, "except ValueError: pass": NoAdvice, "nodes.append({'id': i, 'next': [i + 1]})": NoAdvice,
		"total += Decimal(1) / (Decimal(k) * k)": NoAdvice, "yield sum(map(int, row))": NoAdvice, "good.append(int(v) * 2)": NoAdvice,
		"counts[word.lower()] += 1": NoAdvice, "name = 'x' + suffix": NoAdvice, "f(*rows, **options)": NoAdvice, "text = line.strip() + rest": NoAdvice,
	} {
		cell := "import x\n\nfor i in rows:\n    " + text + "\n"
		d := Run(scene{acts: []act{one(4, "", "", timeline.StatePython, 0), short(one(3, "", "", timeline.StatePython, 0))}, times: 12, cell: cell}.record())
		if main, ok := d.Main(); !ok || d.Findings[main].Advice != want {
			t.Errorf("%s: got %+v, want advice %q", text, d.Findings, want)
		}
	}
}

// What a script's atexit functions and threads do comes after its last line.
func TestWhatComesAfterAScriptsEnd(t *testing.T) {
	rec := scene{acts: []act{one(3, "", "", timeline.StatePython, 0), {2 * sec, 0, cellFile, "report", timeline.StatePython, 0}}, script: true}.record()
	d := Run(rec)
	for _, f := range d.Findings {
		if f.ID == SlowExit {
			if f.Place.Line != 1 || !f.AfterEnd {
				t.Errorf("got %+v, want line 1, after the end", f)
			}
			return
		}
	}
	t.Errorf("no exit in %v; %+v", ids(d.Findings), d.Spent)
}
