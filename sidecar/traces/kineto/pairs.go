package kineto

import "bytes"

// maxOpen bounds what the begun events that have not ended take, in bytes: what is begun beyond is left out.
const maxOpen = 64 << 20

// pairs joins the begin and end events (ph B, E) of each thread into complete ones. An end belongs to the
// innermost event that is open on its thread, as the trace event format has it; one that has a name ends the
// innermost of that name, and what was begun inside is left out.
type pairs struct {
	open map[uint32][]begun // by thread
	size int                // bytes that they take
}

// begun is an event whose end has not been read.
type begun struct {
	rec   record // owns its texts
	index uint32 // of the record in the file
	at    int64  // byte in the file
	size  int
}

// begin keeps the scanner's record until it ends. It reports false where there is no room or no start.
func (p *pairs) begin(s *scanner, thread, index uint32) bool {
	b := begun{rec: s.rec, index: index, at: s.base + int64(s.at)}
	b.size = b.rec.own() + 512 // of the record itself
	if !b.rec.hasStart || p.size+b.size > maxOpen {
		return false
	}
	if p.open == nil {
		p.open = map[uint32][]begun{}
	}
	p.open[thread] = append(p.open[thread], b)
	p.size += b.size
	return true
}

// end takes the event that the scanner's record ends, with its duration, and how many were begun inside that
// have no end.
func (p *pairs) end(s *scanner, thread uint32) (whole begun, unended int, ok bool) {
	open := p.open[thread]
	at := len(open) - 1
	if len(s.rec.name) > 0 {
		for at >= 0 && !bytes.Equal(open[at].rec.name, s.rec.name) {
			at--
		}
	}
	if at < 0 || !s.rec.hasStart {
		return begun{}, 0, false
	}
	for i := at; i < len(open); i++ {
		p.size -= open[i].size
	}
	whole, unended = open[at], len(open)-1-at
	clear(open[at:])
	p.open[thread] = open[:at]
	whole.rec.phase, whole.rec.dur, whole.rec.hasDur = 'X', s.rec.start-whole.rec.start, true
	return whole, unended, true
}

// unended counts the events without an end; first is where in the file the first of them is.
func (p *pairs) unended() (n int, first int64) {
	for _, open := range p.open {
		for i := range open {
			if n++; n == 1 || open[i].at < first {
				first = open[i].at
			}
		}
	}
	return n, first
}

// own copies a record's texts out of the window and returns their size.
func (r *record) own() (size int) {
	a := &r.args
	for _, text := range []*[]byte{
		&r.name, &r.cat, &a.label, &a.gbps, &a.dims, &a.concrete, &a.types, &a.hierarchy, &a.stack, &a.flops, &a.collective, &a.dtype, &a.group, &a.groupRanks,
	} {
		*text = bytes.Clone(*text)
		size += len(*text)
	}
	return size
}

// end files the event that the scanner's record ends.
func (w *rows) end(s *scanner) {
	whole, unended, ok := w.pairs.end(s, w.thread(&s.rec))
	if !ok || unended > 0 {
		s.fault(faultPair, s.at)
	}
	if ok {
		s.rec, s.owned = whole.rec, true
		if len(s.rec.cat) == 0 {
			s.rec.cat = []byte("other") // of complete events those without a category are Kineto's own notes
		}
		w.complete(s, whole.index)
		s.owned = false
	}
}

// settlePairs notes what was begun and never ended.
func (w *rows) settlePairs(s *scanner) {
	if n, first := w.pairs.unended(); n > 0 {
		if f := &s.faults[faultPair]; f.n == 0 || first < f.byte {
			f.byte = first
		}
		s.faults[faultPair].n += n
	}
	w.pairs = pairs{}
}
