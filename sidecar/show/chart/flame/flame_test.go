package flame

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// write makes a program of stacks written as "FILE:function>FILE:function", outermost
// first, and returns the node of each. "~/a.py" is the user's own, what is in
// site-packages belongs to a package.
func write(stacks ...string) (Program, []int32) {
	p := Program{Parent: []int32{0}, Function: []int32{0}}
	functions, nodes := make(map[string]int32), make(map[string]int32)
	var ends []int32
	for _, stack := range stacks {
		at, path := int32(0), ""
		for _, name := range strings.Split(stack, ">") {
			f, known := functions[name]
			if !known {
				f = int32(len(p.Functions))
				functions[name] = f
				file, function, _ := strings.Cut(name, ":")
				made := Function{Own: strings.HasPrefix(file, "~/") || strings.HasPrefix(file, "Cell")}
				if in := inPackage.FindStringSubmatch(file); in != nil {
					made.Package = in[1]
				}
				p.Functions = append(p.Functions, made)
				names = append(names[:f:f], function)
			}
			path += ">" + name
			if _, known := nodes[path]; !known {
				nodes[path] = int32(len(p.Parent))
				p.Parent, p.Function = append(p.Parent, at), append(p.Function, f)
			}
			at = nodes[path]
		}
		ends = append(ends, at)
	}
	return p, ends
}

var (
	inPackage = regexp.MustCompile(`/site-packages/(\w+)`)
	names     []string // of the program written last
)

// path says a call and its callers: "main > import scipy".
func path(t *Tree, k int32) string {
	if k == 0 {
		return ""
	}
	return strings.TrimPrefix(path(t, t.Calls[k].Above)+" > "+names[t.Calls[k].Function], " > ")
}

func paths(folded bool, stacks ...string) (got []string) {
	names = nil
	p, ends := write(stacks...)
	t := New(p, nil, folded)
	for _, n := range ends {
		got = append(got, path(t, t.Of[n]))
	}
	return got
}

const site = "/v/lib/python3.12/site-packages/"

func TestStacks(t *testing.T) {
	module := func(path, name string) string { return site + path + ".py:import " + name }
	for _, c := range []struct {
		name         string
		folded       bool
		stacks, want []string
	}{
		{"direct recursion counts once", false, []string{"~/a:f>~/a:f>~/a:g", "~/a:f"}, []string{"f > g", "f"}},
		{"a package's modules are imported with it", true,
			[]string{
				"Cell [1]:cell>" + module("scipy/__init__", "scipy") + ">" + module("scipy/stats/__init__", "scipy.stats") + ">" + site + "scipy/stats/a.py:make",
				"Cell [1]:cell>" + module("scipy/__init__", "scipy") + ">" + module("numpy/__init__", "numpy") + ">" + module("numpy/core", "numpy.core"),
			},
			[]string{"cell > import scipy", "cell > import scipy > import numpy"}},
		{"a call into a library stands for all it calls within its package", true,
			[]string{"Cell [1]:train>" + site + "torch/nn/a.py:call>" + site + "torch/nn/b.py:inner>Cell [1]:forward>" + site + "torch/nn/b.py:linear>" + site + "numpy/a.py:dot"},
			[]string{"train > call > forward > linear > dot"}},
		{"the user's own modules never fold", true, []string{"~/a.py:f>~/a.py:g>~/b.py:h"}, []string{"f > g > h"}},
		{"not folded, every call has a row", false, []string{"Cell [1]:cell>" + module("scipy/__init__", "scipy") + ">" + site + "scipy/a.py:f"}, []string{"cell > import scipy > f"}},
	} {
		if got := paths(c.folded, c.stacks...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// What a box represents is checked with it.
func TestCallsKnowWhatTheyStandFor(t *testing.T) {
	p, ends := write("~/a.py:f>~/a.py:f>~/a.py:f>"+site+"torch/a.py:g>"+site+"torch/a.py:g>"+site+"torch/a.py:h", "~/a.py:f>"+site+"torch/a.py:h")
	tree := New(p, nil, true)
	f := tree.Calls[1]
	if f.Repeats != 2 || f.Callees {
		t.Errorf("f repeats %d times, callees %v; want 2, false", f.Repeats, f.Callees)
	}
	if g := tree.Calls[tree.Of[ends[0]]]; !g.Callees {
		t.Errorf("g stands for h, too")
	}
	if h := tree.Calls[tree.Of[ends[1]]]; h.Callees {
		t.Errorf("h stands for itself alone")
	}
}

func TestOnlyWhatIsAskedForGrows(t *testing.T) {
	p, ends := write("~/a.py:f>~/a.py:g", "~/a.py:h")
	tree := New(p, ends[:1], false)
	if len(tree.Calls) != 3 || tree.Of[ends[1]] != 0 {
		t.Errorf("%d calls, want f and g below the root; h is %d", len(tree.Calls), tree.Of[ends[1]])
	}
}

// calls makes a folded tree of a caller, 1, and functions 2 … 9 below it.
func calls(t *testing.T) *Tree {
	t.Helper()
	var stacks []string
	for _, f := range "bcdefghi" {
		stacks = append(stacks, "~/a.py:main>~/a.py:"+string(f))
	}
	p, _ := write(stacks...)
	return New(p, nil, true)
}

// sampled are columns of which each shows a call of its own, or goes on with the one before.
func sampled(goesOn bool, calls ...int32) []Column {
	columns := make([]Column, len(calls))
	for c, k := range calls {
		columns[c].Call = k
		if goesOn && c > 0 && calls[c-1] == k {
			columns[c].Same = 2
		}
	}
	return columns
}

func TestShortCallsAreOneBox(t *testing.T) {
	tree := calls(t)
	for _, c := range []struct {
		name     string
		columns  []int32
		perPixel float64
		want     []Box // of the second row
	}{
		{"side by side", []int32{2, 3, 2, 2, 4, 2, 1, 2, 3, 2, 2, 4, 2, 2, 1, 2}, 1, []Box{{To: 16, Call: 2, Share: 10. / 16, Others: 2}}},
		{"of one function", []int32{2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, 1, []Box{{To: 12, Call: 2, Share: 0.5}}},
		{"too few", []int32{2, 3, 2, 3}, 1, []Box{{To: 1, Call: 2}, {From: 1, To: 2, Call: 3}, {From: 2, To: 3, Call: 2}, {From: 3, To: 4, Call: 3}}},
		{"some longer than most", []int32{2, 3, 2, 2, 2, 2, 2, 2, 3, 2, 3, 2, 3, 2}, 1, []Box{{To: 14, Call: 2, Share: 10. / 14, Others: 1}}},
		{"wide enough to be told apart", []int32{2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2, 3, 3, 3, 3, 2, 2, 2, 2}, 1,
			[]Box{{To: 4, Call: 2}, {From: 4, To: 8, Call: 3}, {From: 8, To: 12, Call: 2}, {From: 12, To: 16, Call: 3}, {From: 16, To: 20, Call: 2}}},
		{"columns wider than what can be told apart", []int32{2, 3, 2, 3, 2, 3}, 0.25, []Box{{To: 6, Call: 2, Share: 0.5, Others: 1}}},
		{"nothing", []int32{1, 1, 1, 0, 0, 0, 0}, 1, nil},
	} {
		var got []Box
		if rows := tree.Rows(sampled(true, c.columns...), 10, c.perPixel); len(rows) > 1 {
			got = rows[1]
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestALongCallEndsTheShortOnes(t *testing.T) {
	tree := calls(t)
	short := []int32{2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3}
	row := tree.Rows(sampled(true, slices.Concat(short, []int32{5, 5, 5, 5, 5, 5, 5, 5, 5}, short)...), 10, 1)[1]
	want := []Box{{To: 12, Call: 2, Share: 0.5, Others: 1}, {From: 12, To: 21, Call: 5}, {From: 21, To: 33, Call: 2, Share: 0.5, Others: 1}}
	if !slices.Equal(row, want) {
		t.Errorf("got %+v\nwant %+v", row, want)
	}
}

// Columns that show one function by chance are distinguished by what ran between them.
func TestCallsThatLookLongAreShort(t *testing.T) {
	tree := calls(t)
	row := []int32{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2}
	if got, want := tree.Rows(sampled(false, row...), 10, 1)[1], []Box{{To: 20, Call: 2, Share: 0.95, Others: 1}}; !slices.Equal(got, want) {
		t.Errorf("short ones: got %+v, want %+v", got, want)
	}
	if got := tree.Rows(sampled(true, row...), 10, 1)[1]; len(got) != 3 {
		t.Errorf("two long ones and one between: got %+v", got)
	}
	if got, want := tree.Rows(sampled(false, slices.Repeat([]int32{2}, 20)...), 10, 1)[1], []Box{{To: 20, Call: 2}}; !slices.Equal(got, want) {
		t.Errorf("all of one function: got %+v, want %+v", got, want)
	}
}

func TestColumnsKnowWhatWentOn(t *testing.T) {
	tree := calls(t)
	history := []int32{2, 2, 3, 2, 2, 2, 2, 2, 2, 2} // nodes, which are this tree's calls
	var same []int32
	for _, c := range tree.Columns([]int{0, 4, 8, 9, -1, 9}, func(i int) int32 { return history[i] }) {
		same = append(same, c.Same)
	}
	if want := []int32{0, 1, 2, 2, 0, 0}; !slices.Equal(same, want) {
		t.Errorf("the same to depth %v, want %v", same, want)
	}
}

func TestDeeperCallsAreCounted(t *testing.T) {
	deep := strings.Repeat("~/a.py:f>~/a.py:g>", 450)
	p, ends := write(strings.TrimSuffix(deep, ">"), "~/a.py:f")
	tree := New(p, nil, false)
	rows := tree.Rows(sampled(true, tree.Of[ends[0]], tree.Of[ends[0]], tree.Of[ends[1]]), 5, 1)
	if want := []Box{{To: 2, Deeper: 895}}; len(rows) != 6 || !slices.Equal(rows[5], want) {
		t.Errorf("%d rows, the last %+v, want 6, %+v", len(rows), rows[len(rows)-1], want)
	}
}
