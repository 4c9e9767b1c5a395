package pystack

// decode turns the chain into r.found, root first, up to the first frame that
// is not sure.
func (r *reader) decode(t *thread) verdict {
	sure := r.surePart(t)
	if sure == 0 && len(r.chain) > 0 {
		return stackLost
	}
	r.moved, r.generators, r.torn = r.compareChain()
	r.readsBefore = r.codes.reads
	cut := false
	for i := range sure {
		raw := &r.chain[len(r.chain)-1-i]
		f, ok := r.frameOf(t, raw)
		if !ok {
			if f.object != nil && f.proven != r.attempts && r.isAnother(f.object) {
				r.replaced(t, f.object)
			}
			cut = true
			break
		}
		if !raw.heap && f.index < f.object.firstTraceable {
			continue
		}
		r.found = append(r.found, f)
		if raw.heap {
			see(t.plan.heap, raw.addr, t.plan.sample)
		}
	}

	whole, certain := false, len(r.found)
	if cut {
		sure = -1
	} else if sure < len(r.chain) {
		r.learnCalls()
		whole = r.extend(sure)
	} else {
		whole = r.leafIsLive()
		r.learnCalls()
	}
	if !r.confirm(t, certain) {
		return planWrong
	}
	if !whole {
		return stackCut
	}
	return stackWhole
}

// compareChain tells whether the chain changed under the read, whether there are
// generators in it, and whether one of them was another in a copy.
func (r *reader) compareChain() (moved, generators, torn bool) {
	for i := range r.chain {
		f := &r.chain[i]
		moved = moved || !f.stands || i > 0 && !f.still
		generators = generators || f.heap
		torn = torn || f.heap && !f.stands
	}
	return moved, generators, torn
}

// frameOf makes the next frame of r.found; ok is false where there is no such
// instruction.
func (r *reader) frameOf(t *thread, raw *rawFrame) (f frame, ok bool) {
	if depth := len(r.found); depth < len(t.stack) && t.stack[depth].addr == raw.addr && t.stack[depth].code == raw.code {
		old := &t.stack[depth]
		if old.replaced {
			r.replaced(t, old.object)
			object, err := r.codes.get(raw.code)
			if err != nil {
				return f, false
			}
			*old = frame{addr: raw.addr, code: raw.code, instr: ^uint64(0), object: object}
		}
		f = *old
		f.isNew = false
		if f.instr == raw.instr {
			return f, true
		}
		f.instr, f.node = raw.instr, 0
	} else {
		object, err := r.codes.get(raw.code)
		if err != nil {
			return f, false
		}
		f = frame{addr: raw.addr, code: raw.code, instr: raw.instr, object: object, isNew: true}
	}
	f.index, ok = f.object.instruction(r.l, raw.code, raw.instr)
	return f, ok
}

// surePart is the number of frames from the root that are sure: those that
// stand, up to one that has run in between. Where generators come and go under the
// read of most samples that show any, new ones are not: their addresses and that of
// the function that runs them are used again every few microseconds, and copies
// agree by chance. A generator's address is used again
// as soon as it ends, so where one of a row of generators that call each other
// has moved, the others of that row are not sure either, but for those that have
// been there for some samples.
func (r *reader) surePart(t *thread) int {
	n := len(r.chain)
	sure := 0
	for sure < n {
		f := &r.chain[n-1-sure]
		last := sure == n-1
		if !last && f.stands && f.runs && r.chain[n-2-sure].direct {
			return sure + 1 // what lies behind it is left there by an earlier call
		}
		if f.heap && t.plan.unrest > restless && !r.lasting(t, sure, f) {
			return sure
		}
		if f.stands && (f.still || last) {
			sure++
			continue
		}
		if f.stands && !f.heap {
			return sure + 1 // itself, but not what it called
		}
		if !f.heap {
			return sure
		}
		for sure > 0 && r.chain[n-sure].heap && !r.lasting(t, sure-1, &r.chain[n-sure]) {
			sure--
		}
		return sure
	}
	return sure
}

// lastingSamples is for how many samples in a row a generator must have been at
// its place to be trusted while its neighbours move.
const lastingSamples = 8

func (r *reader) lasting(t *thread, depth int, f *rawFrame) bool {
	return depth < len(t.stack) && t.stack[depth].addr == f.addr && t.stack[depth].code == f.code &&
		t.stack[depth].lasted >= lastingSamples
}

// age counts for how many samples the frames of t.next have been there. Samples
// between which the thread did not run say nothing.
func (t *thread) age() {
	old, now := t.stack, t.next
	if len(old) == len(now) && len(now) > 0 && old[len(old)-1].instr == now[len(now)-1].instr {
		for i := range now {
			now[i].lasted = old[i].lasted
		}
		return
	}
	for i := range min(len(old), len(now)) {
		if old[i].addr != now[i].addr || old[i].code != now[i].code {
			break
		}
		now[i].lasted = min(old[i].lasted+1, lastingSamples)
	}
}

// salvage keeps of the last stack what both copies still hold, when no chain
// could be followed: the frames up to the first that changed.
func (r *reader) salvage(t *thread) bool {
	l := r.l
	t.next = t.next[:0]
	for _, f := range t.stack {
		if f.replaced {
			break
		}
		s, offset := r.find(f.addr, l.frame.size)
		if s == nil || s.where != placeTopChunk && s.where != placeChunk {
			break
		}
		now, _ := r.compare(s, offset, false)
		index, ok := f.object.instruction(l, f.code, now.instr)
		if !now.stands || now.code != f.code || !ok || f.proven != r.attempts && !r.trusting && (t.unsure || r.codes.doubtful(f.object)) {
			break
		}
		if now.instr != f.instr {
			f.instr, f.index, f.node = now.instr, index, 0
		}
		t.next = append(t.next, f)
		if !now.still {
			break
		}
	}
	return len(t.next) > 0
}
