package pystack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/measure/spare"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// Sampler reads the stacks of several processes: one goroutine, one clock, and at each
// tick all of them. They share a budget, so that the more there are, the longer the
// interval is that each is read at.
//
// Processes that were forked from one another share what is known of their code
// objects. Add, Fork and Remove may be called from any goroutine.
type Sampler struct {
	sink Sink
	opts SamplerOptions

	mu    sync.Mutex
	queue []func() // what is to be done before the next tick
	over  bool     // Run has returned: nothing is done any more
	wake  chan struct{}

	clock     *clock
	members   []*session
	known     map[*Process]*session
	ended     map[*session]func(error)
	libraries map[*Process]library // of processes that others were forked from
	cost      time.Duration        // of reading one member once, on average
	cpu       time.Duration        // of the thread, when the cost was last looked at
	ticks     int                  // since
	reads     int                  // of members that do not rest, likewise
	looks     int                  // whether the rest of one is over, likewise
	at        int64                // when that was
	begun     int64                // of the sampling
	awake     float64              // members that are read at a tick, on average: the others rest
	resting   float64              // looks a second, of late
}

// SamplerOptions of a Sampler; the zero value is usable.
type SamplerOptions struct {
	Interval time.Duration // the least between two reads of a process, 1 ms if 0
	Budget   float64       // share of a core that the reading of up to fullBudget processes may use, descendantsBudget if 0
	Spare    spare.CPUs    // as in SampleOptions
	Sharing  *Sharing      // with the target
}

const (
	// wakeCost and readCost are what a tick costs besides the reads, and a read costs
	// until that is known: measured on a machine of 2020.
	wakeCost = 15 * time.Microsecond
	readCost = 10 * time.Microsecond
	// fullBudget processes may use all of the budget; more use less.
	fullBudget = 8
	// longestWait is how long those may wait who are added while all others rest.
	longestWait = 10 * time.Millisecond
	// leastTicks make an estimate of what a read costs.
	leastTicks = 4
	// slowest is the longest interval: beyond, stacks are no picture of what a process did.
	slowest = 200 * time.Millisecond
	// restingOver is the time over which the looks at those who rest are counted.
	restingOver = 2 * slowest
)

// NewSampler makes a Sampler without processes.
func NewSampler(sink Sink, opts SamplerOptions) *Sampler {
	if opts.Interval <= 0 {
		opts.Interval = timeline.DefaultInterval
	}
	if opts.Budget == 0 {
		opts.Budget = descendantsBudget
	}
	return &Sampler{
		sink: sink, opts: opts, wake: make(chan struct{}, 1), cost: readCost,
		known: make(map[*Process]*session), ended: make(map[*session]func(error)), libraries: make(map[*Process]library),
	}
}

// Add samples p from the next tick on, as the process that has the given place in
// Recording.Processes. When it can no longer be read, ended is called, once, from the
// sampling goroutine.
func (s *Sampler) Add(p *Process, place int, ended func(error)) {
	s.do(func() { s.take(p, place, ended) }, func() {})
}

// Fork attaches to a process that was forked from a known one, and has executed nothing
// since, and samples it as Add does. done gets the new Process, or why there is none,
// from the sampling goroutine.
func (s *Sampler) Fork(from *Process, pid, place int, done func(*Process, error), ended func(error)) {
	s.do(func() {
		p, err := from.fork(pid, s.libraryOf(from))
		if err == nil {
			s.take(p, place, ended)
		}
		done(p, err)
	}, func() { done(nil, context.Canceled) })
}

// libraryOf is what is known of the code objects of a process's forks. A process that
// is sampled by another goroutine, as the target is, is asked to lend what it knows.
func (s *Sampler) libraryOf(p *Process) library {
	if s.known[p] != nil && p.reader.codes.library != nil {
		return p.reader.codes.library
	}
	l := s.libraries[p]
	if l == nil {
		l = make(library)
		s.libraries[p] = l
		if s.known[p] != nil { // its own from now on, too
			for _, code := range p.reader.codes.byAddr {
				l.add(code)
			}
			p.reader.codes.library = l
			return l
		}
	}
	p.lending.asked.Store(true)
	return l
}

// borrow takes over what other goroutines have lent.
func (s *Sampler) borrow() {
	for p, l := range s.libraries {
		if lent := p.lending.lent.Swap(nil); lent != nil {
			for addr, code := range *lent {
				l[addr] = code
			}
		}
	}
}

// errRemoved is of a process that was removed because it has ended.
var errRemoved = fmt.Errorf("%w: it was removed", ErrGone)

// Remove samples p no longer: it has ended. done is called when p is free, from the
// sampling goroutine.
func (s *Sampler) Remove(p *Process, done func()) {
	s.do(func() {
		if m := s.known[p]; m != nil {
			s.drop(m, errRemoved)
		}
		done()
	}, done)
}

// do has something done by the sampling goroutine, or something else, at once, when
// there is none any more.
func (s *Sampler) do(what, instead func()) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.queue = append(s.queue, what)
	}
	s.mu.Unlock()
	if over {
		instead()
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Sampler) take(p *Process, place int, ended func(error)) {
	if !p.mu.TryLock() { // it is being sampled, which nobody does
		ended(errors.New("the process is sampled already"))
		return
	}
	opts := SampleOptions{Interval: s.opts.Interval, Budget: -1}.withDefaults()
	m := startSession(p, s.sink, opts, s.clock)
	m.descendant, m.place, m.maxProbes = true, place, 2
	s.members, s.known[p], s.ended[m] = append(s.members, m), m, ended
	s.awake++
	s.pace()
}

// drop ends the lanes of a member, or loses them where it may be read again.
func (s *Sampler) drop(m *session, err error) {
	m.finish(m.begun)
	m.lose(err)
	s.members = slices.DeleteFunc(s.members, func(o *session) bool { return o == m })
	ended := s.ended[m]
	delete(s.known, m.p)
	delete(s.ended, m)
	delete(s.libraries, m.p) // its forks hold on to theirs
	m.p.mu.Unlock()
	if !errors.Is(err, errRemoved) {
		ended(err)
	}
	s.pace()
}

// Run samples until ctx ends.
func (s *Sampler) Run(ctx context.Context) {
	worker := newWorker(false)
	defer worker.end()
	s.clock = newClock(worker, s.opts.Interval)
	s.cpu, s.at = worker.cpu(), s.clock.now()
	s.begun = s.at
	defer func() {
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		s.catchUp()
		for _, m := range s.members {
			m.finish(m.begun)
			m.p.mu.Unlock()
		}
		s.members = nil
		s.opts.Sharing.work(false)
	}()
	for ctx.Err() == nil {
		if s.catchUp(); len(s.members) == 0 {
			worker.be(idle)
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
			s.clock.due = s.clock.now()
			worker.suit(time.Duration(s.clock.due-s.begun), s.opts.Spare)
			continue
		}
		if !s.clock.sleep(ctx) {
			return
		}
		s.tick()
		if worker.due(s.clock.now()) {
			worker.away.leave(s.cpus())
		}
		now := s.clock.now()
		worker.missed(s.clock.next(now), now)
	}
}

// cpus are those on which the threads ran last that work, of mostPlaces members at most.
func (s *Sampler) cpus() (known []int) {
	asked := 0
	for _, m := range s.members {
		if asked < mostPlaces && m.computing > 0 {
			asked++
			known = m.cpus(known)
		}
	}
	return known
}

// catchUp does what was asked for since the last tick.
func (s *Sampler) catchUp() {
	s.mu.Lock()
	queue := s.queue
	s.queue = nil
	s.mu.Unlock()
	s.borrow()
	for _, what := range queue {
		what()
	}
}

// tick reads every member once that does not rest.
func (s *Sampler) tick() {
	wake := int64(math.MaxInt64)
	for _, m := range slices.Clone(s.members) {
		if now := time.Now(); s.clock.at(now) >= m.rest.until {
			rested := m.rest.until > 0
			if err := m.step(now); err != nil {
				s.drop(m, err)
				continue
			}
			if rested {
				s.looks++
			} else {
				s.reads++
			}
		}
		wake = min(wake, m.rest.until)
	}
	s.ticks++
	now := s.clock.now()
	s.clock.rest = min(time.Duration(max(wake-now, 0)), longestWait)
	// What costs too much, as an import does, is over soon: the interval is then looked at more often.
	spent := now - s.at
	if spent < slowEvery || spent < upkeepEvery && (s.clock.interval <= s.opts.Interval || s.ticks < leastTicks) {
		return
	}
	cpu := s.clock.worker.cpu()
	if all := s.reads + s.looks; all > 0 {
		used := cpu - s.cpu - time.Duration(s.ticks)*wakeCost
		s.cost = (s.cost + max(used/time.Duration(all), time.Microsecond)) / 2
	}
	s.awake = float64(s.reads) / float64(s.ticks)
	// Those who rest for as long are looked at together: what they cost is spread over the rests.
	seconds := time.Duration(spent).Seconds()
	s.resting += (float64(s.looks)/seconds - s.resting) * min(seconds/restingOver.Seconds(), 1)
	s.cpu, s.at, s.ticks, s.reads, s.looks = cpu, now, 0, 0, 0
	s.pace()
	s.clock.worker.suit(time.Duration(s.at-s.begun), s.opts.Spare)
}

// pace sets the interval to what the budget allows.
func (s *Sampler) pace() {
	// Of many processes each is less of the picture, and where all of them are busy no core
	// is left over: thirty-two get half the budget.
	s.awake = min(s.awake, float64(len(s.members)))
	s.opts.Sharing.work(s.awake >= 1)
	may := s.opts.Sharing.given(limit{s.opts.Budget, takenByMany})
	share := may.now(time.Duration(s.at-s.begun), s.opts.Spare) * math.Sqrt(min(1, fullBudget/max(s.awake, 1)))
	left := max(share-s.resting*s.cost.Seconds(), share/2) // by the looks at those who rest, which the interval does not change
	need := time.Duration((float64(wakeCost) + float64(s.cost)*s.awake) / left)
	s.clock.interval = min(max(s.opts.Interval, need), slowest)
}

// describeChild reports to the sink how the stacks of a process were read that is not the
// target.
func (s *session) describeChild() {
	stats, place, length := s.stats, s.place, s.clock.now()-s.begun
	s.sink.Describe(func(r *timeline.Recording) {
		if place >= len(r.Processes) || stats.Samples == 0 { // it was never seen: others say why
			return
		}
		r.Processes[place].Stacks = timeline.StackReading{
			Reason: timeline.StacksRead, Interval: time.Duration(length / max(stats.Samples, 1)),
			Samples: stats.Samples, Reads: stats.Reads, Lost: stats.Lost, Cut: stats.Truncated,
		}
	})
}
