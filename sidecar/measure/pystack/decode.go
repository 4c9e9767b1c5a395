package pystack

// decode turns the chain into frames, root first, up to the first one that is not
// sure.
func (a *attempt) decode() verdict {
	sure := a.surePart()
	if sure == 0 && len(a.chain) > 0 {
		return stackLost
	}
	a.compareChain()
	decoded := a.take(sure)
	a.certain = len(a.found)
	whole := false
	switch {
	case !decoded:
	case sure < len(a.chain):
		a.learnCalls()
		whole = a.extend(sure)
	default:
		whole = a.leafIsLive()
		a.learnCalls()
	}
	if !a.confirm() {
		return planWrong
	}
	if !whole {
		return stackCut
	}
	return stackWhole
}

// compareChain reports whether the chain changed under the read, whether there are
// generators in it, and whether one of them was another in a copy.
func (a *attempt) compareChain() {
	for i := range a.chain {
		f := &a.chain[i]
		a.moved = a.moved || !f.agrees || i > 0 && !f.unmoved
		a.generators = a.generators || f.heap
		a.torn = a.torn || f.heap && !f.agrees
	}
}

// take decodes the sure frames of the chain; false where one of them has an
// instruction that its code has not.
func (a *attempt) take(sure int) bool {
	for i := range sure {
		raw := &a.chain[len(a.chain)-1-i]
		f, ok := a.frameOf(raw)
		if !ok {
			if f.object != nil && !a.r.isVerified(&f) && a.r.isAnother(f.object) {
				a.replace(f.object)
			}
			return false
		}
		if !raw.heap && f.index < f.object.FirstTraceable {
			continue
		}
		f.elided = raw.elided
		a.found = append(a.found, f)
		if raw.heap {
			see(a.t.plan.heap, raw.addr, a.t.plan.sample)
		}
	}
	return true
}

// frameOf makes the next frame; ok is false where there is no such instruction.
func (a *attempt) frameOf(raw *rawFrame) (f frame, ok bool) {
	t, codes := a.t, a.r.codes
	if depth := len(a.found); depth < len(t.stack) && t.stack[depth].addr == raw.addr && t.stack[depth].code == raw.code {
		old := &t.stack[depth]
		if old.replaced {
			a.replace(old.object)
			object, err := codes.get(raw.code)
			if err != nil {
				return f, false
			}
			*old = frame{addr: raw.addr, code: raw.code, instr: ^uint64(0), object: object}
		}
		f = *old
		f.isNew = f.instr != raw.instr
		if !f.isNew {
			return f, true
		}
		f.instr, f.node = raw.instr, 0
	} else {
		object, err := codes.get(raw.code)
		if err != nil {
			return f, false
		}
		f = frame{addr: raw.addr, code: raw.code, instr: raw.instr, object: object, isNew: true}
	}
	f.index, ok = f.object.Instruction(a.r.l, raw.instr)
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
func (a *attempt) surePart() int {
	n := len(a.chain)
	sure := 0
	for sure < n {
		f := &a.chain[n-1-sure]
		last := sure == n-1
		if !last && f.agrees && f.executing && a.chain[n-2-sure].isRemnant() {
			return sure + 1
		}
		if f.heap && a.t.plan.generatorChurn > maxChurn && !a.t.lasting(sure, f) {
			return sure
		}
		if f.agrees && (f.unmoved || last) {
			sure++
			continue
		}
		if f.agrees && !f.heap {
			return sure + 1 // itself, but not what it called
		}
		if !f.heap {
			return sure
		}
		for sure > 0 && a.chain[n-sure].heap && !a.t.lasting(sure-1, &a.chain[n-sure]) {
			sure--
		}
		return sure
	}
	return sure
}

// isRemnant reports whether a frame lies behind one that runs because it was called earlier. One above
// frames that are left out was called by another. C code
// that throws into a row of coroutines links the outermost to the frame that runs it, as
// if that had called it (_gen_throw in Objects/genobject.c of 3.12 and 3.13).
func (f *rawFrame) isRemnant() bool { return f.direct && !f.linked && !f.elided }

// lastingSamples is for how many samples in a row a generator must have been at
// its place to be trusted while its neighbours move.
const lastingSamples = 8

func (t *thread) lasting(depth int, f *rawFrame) bool {
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
		s, offset := r.find(f.addr, l.Frame.Size)
		if s == nil || !s.onDataStack() || f.replaced {
			break
		}
		now, _ := r.compare(s, offset, false)
		index, ok := f.object.Instruction(l, now.instr)
		if !now.agrees || now.code != f.code || !ok {
			break
		}
		if !r.isVerified(&f) && !r.checks.recentlyVerified && (t.unsure || r.codes.doubtful(f.object)) {
			break
		}
		if now.instr != f.instr {
			f.instr, f.index, f.node = now.instr, index, 0
		}
		t.next = append(t.next, f)
		if !now.unmoved {
			break
		}
	}
	return len(t.next) > 0
}
