package diagnose

import (
	"fmt"
	"slices"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/activity"
)

// played is a cell whose functions compute in turns, each in several lines; off is how many of four times they
// have no CPU, which others keep busy.
func played(off int, functions ...timeline.Frame) *timeline.Recording {
	b := timeline.NewBuilder(timeline.Options{Origin: 1})
	text := "play()\n@cache\n@retry(\n    3)\ndef play():\n    pass\n"
	b.Describe(func(r *timeline.Recording) {
		r.Sources = []timeline.Source{{File: cellFile, Text: text}}
		r.Target.Cell = &timeline.Cell{File: cellFile, Text: text}
		r.Target.PID = 1
		r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
	})
	id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
	top := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 1}))
	for i := range 600 {
		f := functions[i%len(functions)]
		f.File, f.Line = cellFile, 10+i%60
		state := timeline.StatePython
		if i/60%4 < off {
			state = timeline.StateOff
		}
		b.Set(id, timeline.Nanos(i)*10*ms, b.Child(top, b.Frame(f)), state, false)
	}
	b.Track(timeline.TrackSpec{ID: "cpu", Kind: timeline.KindRate, Device: -1, Limit: 2}).AddWindow(0, 6*sec, float64(4-off)/4)
	return b.Snapshot(6 * sec)
}

func function(name string, first int) timeline.Frame {
	return timeline.Frame{Function: name, FirstLine: first}
}

// Where no line stands out, a function may; where none does, those with a good part of the time are named.
func TestFunctionsAreNamedWhereNoLineStandsOut(t *testing.T) {
	for name, c := range map[string]struct {
		functions []timeline.Frame
		want      string
	}{
		"one has most, with its comprehension": {
			[]timeline.Frame{function("play", 2), function("play.<locals>.<listcomp>", 6), function("moves", 30)}, "play in line 5 4s []",
		},
		"two have half": {[]timeline.Frame{function("play", 2), function("play", 2), function("moves", 30), function("look", 40)}, "play in line 5 3s []"},
		"three share":   {[]timeline.Frame{function("play", 2), function("moves", 30), function("look", 40)}, " in line 0 0s [play 2s moves 2s look 2s]"},
		"none is a function": {
			[]timeline.Frame{function("<module>", 1), function("<lambda>", 3)}, " in line 0 0s []",
		},
	} {
		for _, off := range []int{0, 2} { // where others keep the CPUs busy, too
			f := Run(played(off, c.functions...)).Findings[0]
			names := []string{}
			for _, m := range f.Functions {
				names = append(names, fmt.Sprint(m.Name, " ", m.Nanos.Duration()))
			}
			if got := fmt.Sprint(f.Name, " in line ", f.Place.Line, " ", f.PlaceTime.Duration(), " ", names); f.ID != NoLineStandsOut || got != c.want {
				t.Errorf("%s, off %d: %s %s, want %s", name, off, f.ID, got, c.want)
			}
		}
	}
	if got := leading([]activity.FunctionTime{{Name: "a", Nanos: 30}, {Name: "b", Nanos: 9}}, 100, 3); got != nil {
		t.Errorf("%v named beside none", got)
	}
}

// Of a function that is named its line is, too, where that has most of it: another function's line has as much.
func TestAFunctionsLineIsNamedWhereItHasMostOfIt(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []int // of five turns, which three of another function's line follow
		others int   // lines of the other function
		want   int
	}{
		"two lines by turns":   {[]int{10, 11, 10, 11, 12, 0, 0, 0}, 2, 0},
		"one has three fifths": {[]int{10, 10, 11, 10, 12, 0, 0, 0}, 1, 10},
	} {
		b := timeline.NewBuilder(timeline.Options{Origin: 1})
		b.Describe(func(r *timeline.Recording) {
			r.Sources = []timeline.Source{{File: cellFile, Text: "play()\nkeep()\n"}}
			r.Target.Cell, r.Target.PID = &timeline.Cell{File: cellFile, Text: "play()\nkeep()\n"}, 1
			r.Processes = []timeline.Process{{PID: 1, Role: "kernel"}}
		})
		id := b.Thread(timeline.Thread{PID: 1, Main: true, RunsCell: true})
		top := b.Child(timeline.RootNode, b.Frame(timeline.Frame{Function: "<module>", File: cellFile, Line: 1}))
		for i := range 600 {
			f := timeline.Frame{Function: "play", FirstLine: 9, File: cellFile, Line: c.lines[i%len(c.lines)]}
			if i%8 > 4 {
				f.Function, f.FirstLine, f.Line = "keep", 30, 31+i/8%c.others
			}
			b.Set(id, timeline.Nanos(i)*10*ms, b.Child(top, b.Frame(f)), timeline.StatePython, false)
		}
		f := Run(b.Snapshot(6 * sec)).Findings[0]
		if f.ID != NoLineStandsOut || f.Name != "play" || f.Next.Line != c.want {
			t.Errorf("%s: %s, %s, line %d, want %d", name, f.ID, f.Name, f.Next.Line, c.want)
		}
	}
}

// A cell without functions whose lines share the time, three scores computed one after the other, say, has these lines named.
func TestLinesThatShareTheTimeAreNamed(t *testing.T) {
	line := func(number int, length timeline.Nanos) act {
		return act{length, number, "", "", timeline.StatePython, 0}
	}
	f := Run(scene{acts: []act{line(3, 1200*ms), line(5, 1100*ms), line(8, 1000*ms), line(9, 100*ms), line(10, 900*ms), line(11, 800*ms)}}.record()).Findings[0]
	var got []int
	for _, l := range f.Lines {
		got = append(got, l.Place.Line)
	}
	if want := []int{3, 5, 8, 10, 11}; f.ID != NoLineStandsOut || !slices.Equal(got, want) || f.Lines[0].Nanos != 1200*ms {
		t.Errorf("%s names %v %+v, want lines %v", f.ID, got, f.Lines, want)
	}
}

// A line is said to have taken the time that the table of lines has, waits included.
func TestALineHasItsWaits(t *testing.T) {
	computes, waits := act{800 * ms, 8, "", "", timeline.StatePython, 0}, act{300 * ms, 8, "", "", timeline.StateWaiting, 0}
	f := Run(scene{acts: []act{computes, waits, {400 * ms, 7, "", "", timeline.StatePython, 0}}}.record()).Findings[0]
	if want := 1100 * ms; f.ID != OneLine || f.Time != want || f.PlaceTime != want || f.Cost != 800*ms {
		t.Errorf("%s: %v there, %v to be had; want %v", f.ID, f.Time.Duration(), f.Cost.Duration(), want.Duration())
	}
}
