package pytasks

// joinAwaiters finds for each task the one that awaits it: whose fut_waiter it is.
func (r *Reader) joinAwaiters() {
	by := make(map[uint64]int, len(r.tasks))
	for i := range r.tasks {
		if w := r.tasks[i].Waiter; w != 0 {
			by[w] = i
		}
	}
	for i := range r.tasks {
		if awaiter, ok := by[r.tasks[i].Addr]; ok && awaiter != i {
			r.tasks[i].Awaiter = awaiter
		}
	}
}
