package documents

import (
	"github.com/omni-perf/omni-perf/sidecar/show/chart/flame"
)

// Geometry is the boxes of each lane's rows of the unzoomed picture, in columns:
// nil for tracks.
func Geometry(d *Document, columns int) [][][]box { return geometry(d, columns, 1) }

// geometry is the same with so many columns for each pixel of the picture.
func geometry(d *Document, columns int, perPixel float64) [][][]box {
	t := treeOf(d)
	at := flame.Instants(0, float64(d.DurationNS)/1000, columns)
	histories := d.histories()
	out := make([][][]box, len(d.Chart.Lanes))
	for i, l := range d.Chart.Lanes {
		switch {
		case l.Kind == "flame":
			out[i] = flameRows(t, histories[l.Index], picks(histories[l.Index], at), l, perPixel)
		case l.Kind == "lines":
			spans := histories[0]
			out[i] = [][]box{rowOf(picks(spans, at), func(s int) int { return d.lineAt(spans[s].node, l.Index) })}
		case l.Kind == "thread":
			spans := histories[l.Index]
			out[i] = [][]box{rowOf(picks(spans, at), func(s int) int {
				if l.By == "code" {
					return d.codeAt(t, spans[s])
				}
				if st := spans[s].state; st == Python || st == Native || st == IO || st == GIL {
					return int(st) + 1
				}
				return 0
			})}
		}
	}
	return out
}

func (d *Document) histories() [][]span {
	out := make([][]span, len(d.Threads))
	for t := range out {
		at := int64(0)
		for i := d.Spans.First[t]; i < d.Spans.First[t+1]; i++ {
			start := at + d.Spans.Gap[i]
			at = start + d.Spans.Length[i]
			out[t] = append(out[t], span{start, at, d.Spans.Node[i], State(d.Spans.State[i])})
		}
	}
	return out
}

// lineAt is the innermost own line of a stack, of one file where that is asked;
// 0 for none.
func (d *Document) lineAt(node, file int) int {
	for ; node > 0; node = d.Nodes.Parent[node] {
		frame := d.Nodes.Frame[node]
		f := d.Functions[d.Frames.Function[frame]]
		if d.Frames.Line[frame] > 0 && d.Files[f.File].Code <= int(User) && (file < 0 || f.File == file) {
			return d.Frames.Line[frame]
		}
	}
	return 0
}

// codeAt is 1 + the code of the outermost library call of a stack, else of its
// innermost function; 0 where it waited.
func (d *Document) codeAt(t *flame.Tree, s span) int {
	if s.state == Waiting {
		return 0
	}
	code := 0
	for k := t.Of[s.node]; k > 0; k = t.Calls[k].Above {
		c := d.codeOf(t, k)
		if code == 0 || c > int(User) {
			code = c + 1
		}
	}
	return code
}

// codeOf is whose code a call is.
func (d *Document) codeOf(t *flame.Tree, call int32) int {
	return d.Functions[t.Calls[call].Function].Code
}
