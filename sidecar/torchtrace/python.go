package torchtrace

import (
	"cmp"
	"slices"
	"strings"
)

// leaf is a stretch of time during which one Python frame of a thread was the
// innermost.
type leaf struct {
	start, end int64
	frame      int32 // row of Trace.Python
}

// pythonThread is what one thread ran in Python.
type pythonThread struct {
	leaves []leaf // by time, disjoint
	frames int    // how often the innermost frame changed
}

// pythonStacks turns the frames into leaves per thread and finds each frame's
// caller (-1: none), both by nesting in time. Leaves that touch none of the
// gaps, which are in time order, are left out.
func pythonStacks(t *Trace, gaps []deviceGap) (threads map[uint32]*pythonThread, caller []int32) {
	p := &t.Python
	order := make([]int32, p.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.Thread[a], p.Thread[b]), cmp.Compare(p.Start[a], p.Start[b]), cmp.Compare(p.Dur[b], p.Dur[a]))
	})
	threads = map[uint32]*pythonThread{}
	caller = make([]int32, p.Len())
	var open []int32
	var th *pythonThread
	var now int64 // up to here the thread's leaves are known
	next := 0     // the first gap that ends after now
	emit := func(frame int32, until int64) {
		if until <= now {
			return
		}
		for next < len(gaps) && gaps[next].end <= now {
			next++
		}
		th.frames++
		if next < len(gaps) && gaps[next].start < until {
			th.leaves = append(th.leaves, leaf{now, until, frame})
		}
		now = until
	}
	end := func(frame int32) int64 { return p.Start[frame] + max(0, p.Dur[frame]) }
	closeUntil := func(at int64) {
		for len(open) > 0 && end(open[len(open)-1]) <= at {
			top := open[len(open)-1]
			emit(top, end(top))
			open = open[:len(open)-1]
		}
	}
	for i, frame := range order {
		if i == 0 || p.Thread[order[i-1]] != p.Thread[frame] {
			if th != nil {
				closeUntil(1<<63 - 1)
			}
			th, now, next, open = &pythonThread{}, p.Start[frame], 0, open[:0]
			threads[p.Thread[frame]] = th
		}
		closeUntil(p.Start[frame])
		caller[frame] = -1
		if len(open) > 0 {
			caller[frame] = open[len(open)-1]
			emit(caller[frame], p.Start[frame])
		}
		now = max(now, p.Start[frame])
		open = append(open, frame)
	}
	if th != nil {
		closeUntil(1<<63 - 1)
	}
	return threads, caller
}

// deviceGap is a time when no stream of the rank had work.
type deviceGap struct {
	interval
	next *span // what ended it
}

// deviceGaps lists them between the first and the last span.
func deviceGaps(v *view) (list []deviceGap, sum int64) {
	var latest int64
	for i := range v.spans {
		s := &v.spans[i]
		if i > 0 && s.start > latest {
			list = append(list, deviceGap{interval{latest, s.start}, s})
			sum += s.start - latest
		}
		latest = max(latest, s.end())
		if i == 0 {
			latest = s.end()
		}
	}
	return list, sum
}

// idleCost is the idle time one frame was running for.
type idleCost struct {
	ns   int64
	gaps int
}

// idlePlaces sums idle time by the caller's line and the innermost line, both
// as "file(line): function".
type idlePlaces map[[2]string]*idleCost

func (p idlePlaces) add(key [2]string, c idleCost) {
	if p[key] == nil {
		p[key] = &idleCost{}
	}
	p[key].ns += c.ns
	p[key].gaps += c.gaps
}

// list writes the places into the table, the costliest first.
func (p idlePlaces) list(v *view, t *Table, whole int64) {
	keys := make([][2]string, 0, len(p))
	for key := range p {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(p[b].ns, p[a].ns), strings.Compare(a[0]+a[1], b[0]+b[1]))
	})
	for _, key := range keys {
		c := p[key]
		file, line, function, _ := pythonPlace(key[1])
		t.add(v.t.Rank, key[0], function, file, line, c.gaps, micros(c.ns), percent(c.ns, whole))
	}
}

// recordedStacks is pythonIdle for traces of older profilers, which wrote the
// stack into each operator ("Call stack", innermost frame first): a gap is
// charged to the operator that launched the kernel after it.
func recordedStacks(v *view, t *Table) {
	o := &v.t.Ops
	if len(o.stacks) == 0 {
		t.Note = "no Python frames: profile with with_stack=True"
		return
	}
	tree := nest(v.t, func(row int) bool { return v.keeps(o.Start[row]) })
	callOf := map[int64]int32{}
	for i := range v.calls {
		callOf[v.calls[i].correlation] = v.calls[i].row
	}
	places := idlePlaces{}
	list, whole := deviceGaps(v)
	for _, g := range list {
		key := [2]string{"", "(no Python running)"}
		if row, ok := callOf[g.next.correlation]; ok && row >= 0 {
			op := tree.innermost(v.t, v.t.Calls.Thread[row], v.t.Calls.Start[row])
			for ; op >= 0; op = tree.parent[op] {
				if stack := o.stacks[tree.rows[op]]; stack != 0 {
					key = stackPlace(v.t.Text(stack))
					break
				}
			}
		}
		places.add(key, idleCost{g.end - g.start, 1})
	}
	places.list(v, t, whole)
}

// stackPlace takes the caller's and the innermost line from "f;g;h".
func stackPlace(stack string) (key [2]string) {
	for _, frame := range strings.Split(stack, ";") {
		file, _, _, ok := pythonPlace(frame)
		if !ok {
			continue
		}
		if key[1] == "" {
			key[1] = frame
		}
		if !installed(file) {
			key[0] = frame
			break
		}
	}
	if key[1] == "" {
		key[1] = stack
	}
	return key
}

// charge adds a gap to the frames that were innermost during it and returns
// the parts during which none was.
func (th *pythonThread) charge(byFrame map[int32]*idleCost, gap interval) (bare []interval) {
	at, _ := slices.BinarySearchFunc(th.leaves, gap.start, func(l leaf, at int64) int { return cmp.Compare(l.end, at+1) })
	from := gap.start
	for ; at < len(th.leaves) && th.leaves[at].start < gap.end; at++ {
		l := th.leaves[at]
		if l.start > from {
			bare = append(bare, interval{from, l.start})
		}
		c := byFrame[l.frame]
		if c == nil {
			c = &idleCost{}
			byFrame[l.frame] = c
		}
		c.ns += min(l.end, gap.end) - max(l.start, gap.start)
		c.gaps++
		from = l.end
	}
	if from < gap.end {
		bare = append(bare, interval{from, gap.end})
	}
	return bare
}

// mainThread is the thread with Python that launches most; monitors that only
// wait have long frames but few.
func mainThread(v *view, threads map[uint32]*pythonThread) *pythonThread {
	weight := map[uint32]int{}
	for i := range v.calls {
		if row := v.calls[i].row; row >= 0 {
			weight[v.t.Calls.Thread[row]]++
		}
	}
	var main *pythonThread
	most := -1
	for _, id := range sortedKeys(threads) {
		if w := weight[id] + threads[id].frames; w > most {
			main, most = threads[id], w
		}
	}
	return main
}

// pythonIdle attributes the device's idle time to Python lines: to what the
// thread that launched the next kernel ran meanwhile, and where that ran no
// Python (autograd's), to what the main thread ran.
func pythonIdle(v *view) *Table {
	t := newTable(TablePythonIdle, "Python lines the device idled for",
		&Column{Name: "rank", Kind: Int},
		&Column{Name: "caller", Kind: Text}, // innermost frame outside installed packages: whose line it is
		&Column{Name: "function", Kind: Text},
		&Column{Name: "file", Kind: Text},
		&Column{Name: "line", Kind: Int}, // where the function starts
		&Column{Name: "gaps", Kind: Int},
		&Column{Name: "idle_us", Kind: Micros},
		&Column{Name: "idle_pctg", Kind: Percent}) // of the rank's idle time
	if v.t.Python.Len() == 0 {
		recordedStacks(v, t)
		return t
	}
	list, whole := deviceGaps(v)
	threads, caller := pythonStacks(v.t, list)
	threadOf := map[int64]uint32{} // correlation → thread
	for i := range v.calls {
		if row := v.calls[i].row; row >= 0 {
			threadOf[v.calls[i].correlation] = v.t.Calls.Thread[row]
		}
	}
	main := mainThread(v, threads)
	byFrame := map[int32]*idleCost{}
	var rest idleCost
	for _, g := range list {
		th := main
		if id, ok := threadOf[g.next.correlation]; ok && threads[id] != nil {
			th = threads[id]
		}
		bare := th.charge(byFrame, g.interval)
		if th != main {
			var still []interval
			for _, b := range bare {
				still = append(still, main.charge(byFrame, b)...)
			}
			bare = still
		}
		if len(bare) > 0 {
			rest.ns += length(bare)
			rest.gaps++
		}
	}
	places := idlePlaces{}
	for frame, c := range byFrame {
		key := [2]string{userFrame(v.t, caller, frame), pythonFrame(v.t, caller, frame)}
		places.add(key, *c)
	}
	places.list(v, t, whole)
	if rest.ns > 0 {
		t.add(v.t.Rank, "", "(no Python running)", "", 0, rest.gaps, micros(rest.ns), percent(rest.ns, whole))
	}
	return t
}

// pythonFrame is the innermost frame with a file from here outwards; built-in
// methods have none.
func pythonFrame(t *Trace, caller []int32, frame int32) string {
	for f := frame; f >= 0; f = caller[f] {
		if name := t.Text(t.Python.Name[f]); strings.Contains(name, "): ") {
			if _, _, _, ok := pythonPlace(name); ok {
				return name
			}
		}
	}
	return t.Text(t.Python.Name[frame])
}

// userFrame is the innermost frame of code that is not installed; "" if the
// stack has none.
func userFrame(t *Trace, caller []int32, frame int32) string {
	for f := frame; f >= 0; f = caller[f] {
		name := t.Text(t.Python.Name[f])
		file, _, _, ok := pythonPlace(name)
		if ok && !installed(file) {
			return name
		}
	}
	return ""
}

// installed reports whether a file belongs to Python or a package.
func installed(file string) bool {
	for _, part := range []string{"site-packages/", "dist-packages/", "torch/", "lib/python", "<frozen", "<string>"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	// Standard library modules are recorded without their folder.
	return !strings.Contains(file, "/") && slices.Contains([]string{
		"threading.py", "runpy.py", "contextlib.py", "functools.py", "queue.py", "selectors.py", "socket.py",
		"asyncio.py", "copy.py", "json.py", "logging.py", "random.py", "re.py", "typing.py", "abc.py", "enum.py",
	}, file)
}

// pythonPlace splits "file.py(12): function".
func pythonPlace(name string) (file string, line int, function string, ok bool) {
	end := strings.Index(name, "): ")
	if end < 0 {
		return "", 0, name, false
	}
	open := strings.LastIndexByte(name[:end], '(')
	if open < 0 {
		return "", 0, name, false
	}
	for _, c := range []byte(name[open+1 : end]) {
		if c-'0' > 9 {
			return "", 0, name, false
		}
		line = line*10 + int(c-'0')
	}
	return name[:open], line, name[end+3:], true
}
