package chart

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// streamLane is what one stream of one GPU ran.
type streamLane struct {
	index              int // of the report's kernels
	name, value, about string
	names              []string // of kernels, clean
	kinds              []int    // of the same, indices into kernelKinds
	work               []work
	blocks             []span // node is one of work
	busy               float64
}

// work is a block's kernel, or the longest of so many.
type work struct {
	name  int // index into the lane's names and kinds
	count int
}

// maxStreams bounds the streams shown.
const maxStreams = 8

// kernelKinds are the colours of what runs on a GPU, and their legend.
var kernelKinds = []struct {
	paint scene.Paint
	name  string
}{{scene.PaintGPU, "compute kernel"}, {scene.PaintMemory, "communication"}, {scene.PaintGPUMemory, "copy or fill"}}

// kernelKind returns what a kernel does, by its name.
func kernelKind(name string) int {
	lower := strings.ToLower(name)
	switch {
	case strings.Contains(lower, "nccl"), strings.Contains(lower, "rccl"), strings.HasPrefix(lower, "hccl"):
		return 1
	case strings.Contains(lower, "memcpy"), strings.Contains(lower, "memset"), strings.HasPrefix(lower, "dma"):
		return 2
	}
	return 0
}

// streamsOf returns the busiest streams, in the report's order, and how many
// others ran something.
func streamsOf(r *report.View, duration float64) ([]streamLane, int) {
	var lanes []streamLane
	for i := range r.Kernels {
		if lane := streamOf(r, i, duration); lane.busy > 0 {
			lanes = append(lanes, lane)
		}
	}
	more := len(lanes) - maxStreams
	if more <= 0 {
		return lanes, 0
	}
	byBusy := make([]float64, len(lanes))
	for i, lane := range lanes {
		byBusy[i] = lane.busy
	}
	slices.Sort(byBusy)
	kept := slices.DeleteFunc(lanes, func(l streamLane) bool { return l.busy < byBusy[more] })
	return kept[:maxStreams], more
}

// streamOf reads a stream's blocks.
func streamOf(r *report.View, i int, duration float64) streamLane {
	k := &r.Kernels[i]
	lane := streamLane{index: i, name: fmt.Sprintf("GPU %d stream %d", r.Devices[k.Device].Number, k.Stream)}
	for _, name := range k.Names {
		lane.names = append(lane.names, words.Clean(name, words.MaxName))
		lane.kinds = append(lane.kinds, kernelKind(name))
	}
	ran, at := int64(0), int64(0)
	for i := range k.GapNS {
		start := at + k.GapNS[i]
		at = start + k.LengthNS[i]
		if start == at {
			continue
		}
		lane.blocks = append(lane.blocks, span{start: report.Seconds(start), end: report.Seconds(at), node: int32(len(lane.work))})
		lane.work = append(lane.work, work{int(k.Name[i]), int(k.Count[i])})
		lane.busy += report.Seconds(k.LengthNS[i])
		ran += k.Count[i]
	}
	lane.value = words.Percent(lane.busy/duration) + " busy"
	lane.about = fmt.Sprintf("%s: %s of work in %s", lane.name, words.Seconds(lane.busy), words.Plural(int(ran), "kernel, copy or fill", "kernels, copies and fills"))
	if k.ResolutionNS > 0 {
		lane.about += ", joined where closer than " + words.Resolution(report.Seconds(k.ResolutionNS))
	}
	return lane
}

// streams are the GPUs' streams, on the time axis of the flame chart.
func (l *layouter) streams() {
	shown := l.d.streams[:min(len(l.d.streams), l.dt.streams)]
	for i := range shown {
		s := &shown[i]
		row := scene.Row{Y0: l.Y, Y1: l.Y + streamHeight}
		row.Boxes = l.streamBlocks(s, l.dt.titles/(2*len(shown)))
		l.lane(scene.Lane{
			ID: "stream", Kind: scene.StreamLane, Index: s.index, Box: scene.Box{X0: l.Plot.X0, Y0: row.Y0, X1: l.Plot.X1, Y1: row.Y1}, About: s.about, Base: true, Rows: []scene.Row{row},
			Names: scene.LaneNames{Name: s.name, Value: s.value},
		}, nil, streamHeight)
		l.Y += streamPitch
	}
	if more := l.d.moreStreams + len(l.d.streams) - len(shown); more > 0 {
		text := "+ " + words.Plural(more, "more stream", "more streams")
		l.Text(l.Plot.X0, l.Y+8, scene.Fit(text, l.Plot.X1-l.Plot.X0, scene.SmallSize, scene.Sans), scene.SmallSize, scene.Muted, scene.Sans, scene.Left)
		l.Y += 15
	}
}

// streamBlocks draws a wide block as itself; where blocks are too narrow to distinguish
// apart, neighbours of one colour are one box. At most so many get a tooltip, the
// widest.
func (l *layouter) streamBlocks(s *streamLane, titles int) []scene.Block {
	n, step := l.columns(1)
	columns := raster(s.blocks, n, l.d.duration)
	column := l.d.duration / float64(n)
	runs := runsOf(n, func(c int) int32 {
		i := columns[c]
		switch {
		case i < 0:
			return 0
		case (s.blocks[i].end-s.blocks[i].start)/column*step >= hittable:
			return int32(i) + 1
		}
		return -1 - int32(s.kind(s.blocks[i]))
	})
	widths := make([]int, len(runs))
	for i, run := range runs {
		widths[i] = run.to - run.from
	}
	least := leastTitled(widths, titles, step)
	boxes := make([]scene.Block, 0, len(runs))
	for _, run := range runs {
		paint := kernelKinds[s.kind(s.blocks[columns[run.from]])].paint
		b := scene.Block{X0: l.Plot.X0 + float64(run.from)*step, X1: l.Plot.X0 + float64(run.to)*step, Paint: paint}
		switch {
		case run.to-run.from < least:
		case run.key > 0:
			b.Title = s.blockTitle(s.blocks[run.key-1])
		default:
			b.Title = s.stretchTitle(float64(run.from)*column, float64(run.to)*column)
		}
		l.paints[paint] = true
		boxes = append(boxes, b)
	}
	return boxes
}

func (s *streamLane) kind(b span) int { return s.kinds[s.work[b.node].name] }

func (s *streamLane) blockTitle(b span) string {
	w := s.work[b.node]
	title := fmt.Sprintf("%s\n%s from %s on", s.names[w.name], words.Seconds(b.end-b.start), words.Seconds(b.start))
	if w.count > 1 {
		title += fmt.Sprintf("\nthe longest of %s kernels", words.Count(int64(w.count)))
	}
	return title
}

// stretchTitle returns what a stretch of narrow blocks holds; at least one lies in
// it.
func (s *streamLane) stretchTitle(from, to float64) string {
	sums := make(map[int]float64) // by name
	busy, most := 0.0, 0
	first := sort.Search(len(s.blocks), func(i int) bool { return s.blocks[i].end > from })
	ran := 0
	for _, b := range s.blocks[first:] {
		if b.start >= to {
			break
		}
		w, d := s.work[b.node], min(b.end, to)-max(b.start, from)
		ran += w.count
		busy += d
		if sums[w.name] += d; sums[w.name] > sums[most] {
			most = w.name
		}
	}
	return fmt.Sprintf("%s\nmost of %s, %s of work, from %s to %s", s.names[most],
		words.Plural(ran, "kernel", "kernels"), words.Seconds(busy), words.Seconds(from), words.Seconds(to))
}
