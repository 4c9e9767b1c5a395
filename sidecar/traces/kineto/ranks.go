package kineto

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// Which files are which rank's. A profiler with schedule(repeat=…) writes a file
// per cycle, so that a rank is a process, not a file: files of the same host and
// process number that were not recorded at the same time are cycles of one, also
// where only some of them state the rank: those before torch.distributed was
// initialised cannot. Two files are of two ranks if they state two, or if two
// processes recorded them at the same time. Processes that ran one after the
// other are runs of the program, of which the one that states its rank is kept,
// else the last.

// RankSource says how a trace's rank is known.
type RankSource string

const (
	RankStated   RankSource = "distributedInfo" // written in the file
	RankFromName RankSource = "file name"       // "…rank3…": a guess that a Warning states
	RankAssumed  RankSource = "assumed"         // the lowest number still free
)

// ranked reports whether the file states a rank that can be one.
func (p *parser) ranked() bool { return p.rank >= 0 && p.rank <= 1<<24 }

// wanted reports whether the file's events may be asked for.
func (p *parser) wanted(only []int) bool {
	return p.found && (!p.ranked() || len(only) == 0 || slices.Contains(only, int(p.rank)))
}

// claim is the rank a file has by itself, and where it says so; -1 where it does not.
func (p *parser) claim() (rank int, from RankSource) {
	if p.ranked() {
		return int(p.rank), RankStated
	}
	if rank, ok := rankInName(p.t); ok {
		return rank, RankFromName
	}
	return -1, RankAssumed
}

// certainty orders the sources, the surest first.
var certainty = map[RankSource]int{RankStated: 0, RankFromName: 1, RankAssumed: 2}

// job is the files of one process, by time.
type job []*parser

func (j job) start() int64 { return j[0].t.UnixNs(j[0].t.First) }
func (j job) end() int64   { return j[len(j)-1].t.UnixNs(j[len(j)-1].t.Last) }

// claim is that of the surest of its files.
func (j job) claim() (rank int, from RankSource) {
	rank, from = j[0].claim()
	for _, p := range j[1:] {
		if r, f := p.claim(); certainty[f] < certainty[from] {
			rank, from = r, f
		}
	}
	return rank, from
}

// agrees reports whether a file's rank can be that of the process.
func (j job) agrees(p *parser) bool {
	rank, from := j.claim()
	other, otherFrom := p.claim()
	return from == RankAssumed || otherFrom == RankAssumed || rank == other
}

// overlaps reports whether two processes recorded at the same time.
func (j job) overlaps(o job) bool { return j.start() < o.end() && o.start() < j.end() }

// wallClock is a time, in nanoseconds since the epoch, before which none was recorded: of September 2001. What is said to be
// older counts from when its machine was started.
const wallClock = 1e18

// comparable reports whether the times of two processes can be: where one's count from the epoch, and not the other's, they cannot.
func (j job) comparable(o job) bool { return (j.start() < wallClock) == (o.start() < wallClock) }

// assembly gives files their ranks.
type assembly struct {
	set   *Set
	taken map[int]job
	apart bool // every file is a job of its own
	one   bool // all files are of one process
}

func assemble(parsed []*parser, opts *Options) *Set {
	a := &assembly{set: &Set{}, taken: map[int]job{}, apart: opts.Frame, one: opts.OneProcess}
	var files []*parser
	for _, p := range parsed {
		if p.found {
			files = append(files, p)
		}
	}
	slices.SortStableFunc(files, func(x, y *parser) int { // the others join them
		_, xFrom := x.claim()
		_, yFrom := y.claim()
		return cmp.Compare(certainty[xFrom], certainty[yFrom])
	})
	stated := map[int][]job{}
	named := map[int][]job{}
	var unnamed []job
	for _, j := range a.jobs(files) {
		switch rank, from := j.claim(); from {
		case RankStated:
			stated[rank] = append(stated[rank], j)
		case RankFromName:
			named[rank] = append(named[rank], j)
		case RankAssumed:
			unnamed = append(unnamed, j)
		}
	}
	for _, rank := range sortedKeys(stated) {
		a.stated(rank, stated[rank])
	}
	for _, rank := range sortedKeys(named) {
		a.named(rank, named[rank])
	}
	a.unnamed(unnamed)
	a.warnOfGuesses()
	a.collect(parsed, opts.Ranks)
	return a.set
}

// stated settles the processes that state a rank. Only one can have it.
func (a *assembly) stated(rank int, jobs []job) {
	kept := a.latest(jobs)
	for _, j := range jobs {
		if &j[0] == &kept[0] {
			a.take(rank, RankStated, j)
			continue
		}
		for _, p := range j {
			who := "the file states"
			if !p.ranked() {
				who = "the file is of another run: its process stated"
			}
			p.leftOut(fmt.Sprintf("%s rank %d, as %s does", who, rank, kept[0].t.File), "analyse it on its own")
		}
	}
}

// named settles the processes that state no rank, but whose files' names have it.
func (a *assembly) named(rank int, jobs []job) {
	for _, j := range a.running(jobs) {
		if a.taken[rank] != nil {
			a.unnamed([]job{j})
			continue
		}
		a.take(rank, RankFromName, j)
	}
}

// unnamed settles the processes whose files state no rank, or one that another file
// states, too: they are ranks only if they recorded while such a one did.
func (a *assembly) unnamed(jobs []job) {
	if a.apart || len(a.taken) == 0 {
		jobs = a.running(jobs)
	} else {
		jobs = slices.DeleteFunc(jobs, a.another)
	}
	for _, j := range jobs {
		a.assume(j)
	}
}

// another leaves a process out that did not record while one with a rank did.
func (a *assembly) another(j job) bool {
	for _, with := range a.taken {
		if j.overlaps(with) {
			return false
		}
	}
	with := a.taken[sortedKeys(a.taken)[0]]
	why := "the file is of another run: its process did not record while that of %s did"
	if !j.comparable(with) {
		why = otherClock
	}
	j.leftOut(why, with)
	return true
}

// assume gives a process the lowest free rank.
func (a *assembly) assume(j job) {
	rank := 0
	for a.taken[rank] != nil {
		rank++
	}
	a.take(rank, RankAssumed, j)
}

func (a *assembly) take(rank int, from RankSource, j job) {
	for _, p := range j {
		p.t.Rank, p.t.RankFrom = rank, from
	}
	a.taken[rank] = j
}

// running keeps, of processes that nothing tells apart, those of the last run:
// that recorded last, and those that recorded while it did.
func (a *assembly) running(jobs []job) (kept []job) {
	if a.apart || len(jobs) == 0 {
		return jobs
	}
	last := a.latest(jobs)
	for _, j := range jobs {
		if &j[0] == &last[0] || j.overlaps(last) {
			kept = append(kept, j)
			continue
		}
		why := "the file is of another run: its process ended before that of %s began to record"
		if !j.comparable(last) {
			why = otherClock
		}
		j.leftOut(why, last)
	}
	return kept
}

// latest is the process that recorded last, the first of equals.
func (a *assembly) latest(jobs []job) job {
	if a.apart {
		return jobs[0]
	}
	return slices.MaxFunc(jobs, func(x, y job) int { return cmp.Compare(x.start(), y.start()) })
}

// jobs groups files by process, in the order of the files. What a process is
// said to have recorded twice at the same time is of another one, on a machine
// that gives the same number; unless it is the same recording again.
func (a *assembly) jobs(files []*parser) (jobs []job) {
	for _, p := range files {
		at, copyOf := -1, (*parser)(nil)
		for i, j := range jobs {
			if a.apart || !a.one && (!sameProcess(j[0].t, p.t) || !j.agrees(p) || !j.comparable(job{p})) {
				continue
			}
			if copyOf = p.copyIn(j); copyOf != nil {
				break
			}
			if !slices.ContainsFunc(j, func(o *parser) bool { return job{o}.overlaps(job{p}) }) {
				at = i
				break
			}
		}
		switch {
		case copyOf != nil:
			p.leftOut(fmt.Sprintf("the file is the same recording as %s", copyOf.t.File), "")
		case at >= 0:
			jobs[at] = append(jobs[at], p)
			slices.SortStableFunc(jobs[at], func(x, y *parser) int { return cmp.Compare(job{x}.start(), job{y}.start()) })
		default:
			jobs = append(jobs, job{p})
		}
	}
	return jobs
}

// sameProcess reports whether two files can be of one process.
func sameProcess(a, b *Trace) bool {
	return a.Process.PID >= 0 && a.Process.PID == b.Process.PID &&
		(a.Process.Host == b.Process.Host || a.Process.Host == "" || b.Process.Host == "")
}

// copyIn finds the file that p is a copy of.
func (p *parser) copyIn(j job) *parser {
	for _, o := range j {
		if o.t.UnixNs(o.t.First) == p.t.UnixNs(p.t.First) && o.t.UnixNs(o.t.Last) == p.t.UnixNs(p.t.Last) && o.t.Records == p.t.Records {
			return o
		}
	}
	return nil
}

// warnOfGuesses warns of ranks that no file states, where there are several.
func (a *assembly) warnOfGuesses() {
	if len(a.taken) < 2 {
		return
	}
	for _, rank := range sortedKeys(a.taken) {
		j := a.taken[rank]
		how := fmt.Sprintf("it is called rank %d here", rank)
		switch j[0].t.RankFrom {
		case RankStated:
			continue
		case RankFromName:
			how = fmt.Sprintf("rank %d is taken from its name", rank)
		}
		if n := len(j) - 1; n > 0 {
			how += fmt.Sprintf("; so it is of %s of its process", words.Plural(n, "other file", "other files"))
		}
		j[0].warn(-1, "the file does not state its rank", how)
	}
}

// otherClock is why a file cannot be analysed with another one.
const otherClock = "the file's times and those of %s are of different clocks: they cannot be placed on one time axis"

// leftOut warns that a process is not analysed with another one.
func (j job) leftOut(why string, with job) {
	for _, p := range j {
		p.leftOut(fmt.Sprintf(why, with[0].t.File), "analyse it on its own, or compare runs")
	}
}

// leftOut warns that a file is not analysed.
func (p *parser) leftOut(why, advice string) {
	lost := "this file was left out"
	if advice != "" {
		lost += ": " + advice
	}
	p.warn(-1, why, lost)
}

// collect makes the set of the ranks asked for.
func (a *assembly) collect(parsed []*parser, only []int) {
	for _, p := range parsed {
		a.set.Warnings = append(a.set.Warnings, p.warnings...)
	}
	a.set.found = sortedKeys(a.taken)
	for _, rank := range a.set.found {
		if len(only) > 0 && !slices.Contains(only, rank) {
			continue
		}
		for _, p := range a.taken[rank] {
			a.set.Traces = append(a.set.Traces, p.t)
		}
	}
	for _, rank := range only {
		if a.taken[rank] == nil {
			a.set.Warnings = append(a.set.Warnings, Warning{Byte: -1, What: fmt.Sprintf("rank %d was asked for, but no file is of it", rank)})
		}
	}
}

// nameRank finds the rank in a file name: rank3, rank_3, worker3.
var nameRank = regexp.MustCompile(`(?i)(?:rank|worker|gpu)[-_.]?(\d{1,6})(?:\D|$)`)

// rankInName takes the rank from the file name, but not from the name of a
// host in it.
func rankInName(t *Trace) (rank int, ok bool) {
	name := filepath.Base(t.File)
	if m := handlerName.FindStringSubmatch(name); m != nil && m[2] == strconv.FormatInt(t.Process.PID, 10) {
		return 0, false
	}
	m := nameRank.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	rank, err := strconv.Atoi(m[1])
	return rank, err == nil
}

// sortedKeys lists a map's keys, ascending.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
