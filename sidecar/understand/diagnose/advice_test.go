package diagnose

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

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

// Arrays compute with numbers: a hint to use them is for no other line than one that indexes, or
// computes with what a loop over an array or a range yields.
func TestVectoriseIsSaidOfLoopsOverArrays(t *testing.T) {
	for _, c := range []struct {
		loop, text string
		want       Advice
	}{
		{"for i in rows:", "total += i * i % 7", Vectorise},
		{"for i in range(n):", "total += i * i % 7", Vectorise},
		{"for value in x:", "total += value", Vectorise},
		{"for k, (a, b) in enumerate(zip(xs, ys)):", "total += a * b", Vectorise},
		{"while True:", "c[i][j] += a[i][k] * b[k][j]", Vectorise},
		{"while True:", "if x[i] * 2 > x[j]:", Vectorise},
		{"while True:", "total += sum(a * b for a, b in zip(xs, ys))", Vectorise},

		{"while n != 1:", "n = n // 2 if n % 2 == 0 else 3 * n + 1", NoAdvice}, // each round needs the one before
		{"def distance(A, B):", "return abs(A - B)", NoAdvice},
		{"for d in range(2, n):", "if n % d == 0:", NoAdvice}, // the loop ends there
		{"for Ax, By in product(A_powers, B_powers):", "Cz = Ax + By", NoAdvice},
		{"for line in open(name):", "total += line * size", NoAdvice},
		{"for i in rows:", "total += value", NoAdvice},
		{"for i in rows:", "n += 1", NoAdvice},
		{"while True:", "rows[i] -= rows[i].min() - 1", NoAdvice}, // of arrays, small ones
		{"for i in rows:", "pass", NoAdvice},
		{"for i in rows:", "except ValueError: pass", NoAdvice},
		{"for i in rows:", "nodes.append({'id': i, 'next': [i + 1]})", NoAdvice},
		{"for k in rows:", "total += Decimal(1) / (Decimal(k) * k)", NoAdvice},
		{"for row in rows:", "yield sum(map(int, row))", NoAdvice},
		{"for v in rows:", "good.append(int(v) * 2)", NoAdvice},
		{"for word in rows:", "counts[word.lower()] += 1", NoAdvice},
		{"for suffix in rows:", "name = 'x' + suffix", NoAdvice},
		{"for rows in all:", "f(*rows, **options)", NoAdvice},
		{"for line in rows:", "text = line.strip() + rest", NoAdvice},
		{"for j in rows:", "if not bits & (1 << j):", NoAdvice}, // a set of bits
	} {
		cell := "import x\n\n" + c.loop + "\n    " + c.text + "\n"
		d := Run(scene{acts: []act{one(4, "", "", timeline.StatePython, 0), short(one(3, "", "", timeline.StatePython, 0))}, times: 12, cell: cell}.record())
		if main, ok := d.Main(); !ok || d.Findings[main].Advice != c.want {
			t.Errorf("%s %s: got %+v, want advice %q", c.loop, c.text, d.Findings, c.want)
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
