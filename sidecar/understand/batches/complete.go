package batches

// A pass that is short, or whose loader is fast, may have no reading. Its steps are then among those of the pass before,
// or before the first one.

// total is how many samples a pass hands out; 0: not known.
func (p *pass) total(l *Loader) int64 {
	if l.Batch == 0 {
		return 0
	}
	if l.DropLast {
		return p.samples - p.samples%int64(l.Batch)
	}
	return p.samples
}

// expected is how many steps a pass has that goes to its end; 0: not known.
func (p *pass) expected(l *Loader) int {
	each := int64(l.PerStep) * int64(l.Batch)
	if each == 0 {
		return 0
	}
	return int((p.total(l) + each - 1) / each)
}

// complete adds the passes without a reading where the number of steps shows how many there were: as many as passes
// that go to their end have. sure reports whether there are no others.
func complete(passes []*pass, steps []Step, of func(*pass) *Loader) (list []*pass, sure bool) {
	sure = true
	rates, longest := ratesOf(passes), 0
	for i, p := range passes {
		expected, last := p.expected(of(p)), i == len(passes)-1
		if i == 0 && p.base < 0 && p.to-p.base == expected+1 { // a batch was fetched ahead, before the first step
			p.base, p.ahead = p.base+1, of(p).PerStep
		}
		if i == 0 && anotherBefore(steps, p.from) {
			sure = false // nothing is known of its passes
		} else if i == 0 && p.from > 0 {
			switch {
			case expected > 0 && p.from%expected == 0:
				list = p.unread(0, p.from, expected)
			case expected > 0 && (p.from+1)%expected == 0: // the first step of a hook is not among the steps
				list = p.unread(-1, p.from, expected)
			default:
				sure = false
			}
		}
		var after []*pass
		if made := p.to - p.base; expected > 0 && made > expected {
			begin, end := p.base+expected, p.to
			p.to = max(begin, p.from)
			if more := end - begin; last || more%expected == 0 {
				after = p.unread(begin, end, expected)
			} else {
				sure = false
			}
		}
		made := p.to - p.base
		goes := last && (expected > 0 || made <= longest) // on, when the recording ends
		p.alone = made == expected || goes || 2*float64(p.last().given)*rates[p.loader] > float64(made)
		if sure = sure && p.alone; p.alone {
			longest = max(longest, made)
		}
		list = append(append(list, p), after...)
	}
	return list, sure
}

// anotherBefore reports whether steps before one, of which no pass is known, are those of another training.
func anotherBefore(steps []Step, from int) bool {
	for i := 1; i <= min(from, len(steps)-1); i++ {
		if otherTraining(steps, i) {
			return true
		}
	}
	return false
}

// unread are passes over the same loader that have the steps from one on, at base or later, to before another one.
func (p *pass) unread(base, to, expected int) (list []*pass) {
	if before := -base/expected - 1; before > 0 { // long before the first step: however many those were, they have none
		base += before * expected
	}
	for ; base < to; base += expected {
		from := max(base, 0)
		list = append(list, &pass{loader: p.loader, samples: p.samples, base: base, from: from, to: max(min(base+expected, to), from), alone: true})
	}
	return list
}
