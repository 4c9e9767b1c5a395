package timeline

import "testing"

func TestReadingsOfALoaderAreThinnedAndCut(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	b.Describe(func(r *Recording) { r.Processes = make([]Process, 2) })
	const passes = 3
	each := int64(maxLoaderReadings)
	for pass := range passes {
		for n := range each {
			at := Nanos((int64(pass)*each + n) * 1000)
			b.ReadLoader(Loader{Process: 1, Thread: 7, ID: 9, Batch: 4}, LoaderReading{At: at, Pass: pass, Yielded: n})
		}
	}
	rec := b.Snapshot(Nanos(passes * each * 1000))
	if len(rec.Loaders) != 1 || len(rec.Batches) > maxLoaderReadings || len(rec.Batches) < maxLoaderReadings/2 {
		t.Fatalf("%d loaders, %d readings", len(rec.Loaders), len(rec.Batches))
	}
	var first, last [passes]int64
	for i, r := range rec.Batches {
		if i == 0 || rec.Batches[i-1].Pass != r.Pass {
			first[r.Pass] = r.Yielded
		}
		last[r.Pass] = r.Yielded
	}
	if first != [passes]int64{} || last != [passes]int64{each - 1, each - 1, each - 1} {
		t.Errorf("passes from %v to %v", first, last)
	}
	cell := rec.Slice(Nanos(each*1000), Nanos(2*each*1000-1))
	if r := cell.Batches[0]; r.At != 0 || r.Pass != 1 || r.Yielded != 0 {
		t.Errorf("a cell begins with %+v", r)
	}
	if r := cell.Batches[len(cell.Batches)-1]; r.Pass != 1 || r.Yielded != each-1 {
		t.Errorf("a cell ends with %+v", r)
	}
}

func TestTooManyPassesAreNoted(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	for pass := range maxPasses + 10 {
		b.ReadLoader(Loader{}, LoaderReading{At: Nanos(pass), Pass: pass})
	}
	rec := b.Snapshot(1 << 30)
	if len(rec.Batches) != maxPasses || len(rec.Notes) != 1 || rec.Notes[0].ID != NoteLeftOut {
		t.Errorf("%d readings, notes %+v", len(rec.Batches), rec.Notes)
	}
}

// Readings of queues are spread evenly over a long recording.
func TestReadingsOfQueuesAreThinnedAndCut(t *testing.T) {
	b := NewBuilder(Options{Origin: 1})
	const count = 5*maxQueueReadings + 77
	for n := range count {
		b.ReadQueue(Loader{Workers: n % 2}, QueueReading{At: Nanos(n), Ready: n % 7})
	}
	rec := b.Snapshot(count)
	if len(rec.Loaders) != 2 || len(rec.Queues) < maxQueueReadings/2 || len(rec.Queues) >= maxQueueReadings {
		t.Fatalf("%d loaders, %d readings", len(rec.Loaders), len(rec.Queues))
	}
	last := map[int]Nanos{0: -16, 1: -15}
	for i, r := range rec.Queues {
		if int(r.At)%7 != r.Ready || r.At-last[r.Loader] != 16 {
			t.Fatalf("reading %d is %+v, %d after the one before", i, r, r.At-last[r.Loader])
		}
		last[r.Loader] = r.At
	}
	cell := rec.Slice(1000, 2000)
	if first := cell.Queues[0]; len(cell.Queues) < 1000/8 || first.At < 0 || first.At > 16 || (int(first.At)+1000)%7 != first.Ready {
		t.Errorf("%d readings in a cell, the first %+v", len(cell.Queues), first)
	}
}
