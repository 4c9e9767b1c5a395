package pystack

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
)

// Where iterators have what they go over: rangeiterobject (Objects/rangeobject.c) its next value, from 3.12 on; index,
// start, step and length before; seqiterobject and listiterobject (Objects/iterobject.c, listobject.c) their sequence.
const (
	rangeFields  = 16 // start, step, len; 3.11: index, start, step, len
	listSequence = 24 // listiterobject.it_seq, behind it_index
	listLength   = 16 // PyListObject.ob_size
	maxSamples   = 1 << 40
)

// passSamples is how many samples a pass over a loader has, where its sampler is one of torch's that have a fixed number
// of them; 0: not known. The iterator's sampler is a generator, BatchSampler.__iter__, whose local variable is the iterator
// of the other sampler: a generator, RandomSampler.__iter__, a range, or a list of indices.
func (r *reader) passSamples(iterator uint64) int64 {
	batches, err := r.objects.Attribute(iterator, "_sampler_iter")
	if err != nil {
		return 0
	}
	each, ok := r.generatorLocal(batches, "BatchSampler.__iter__", "sampler_iter")
	if !ok {
		return 0
	}
	switch r.objects.TypeName(each) {
	case "range_iterator":
		return r.rangeLength(each)
	case "list_iterator":
		list, err := cpython.ReadWord(r.mem, each+listSequence)
		if err != nil || list == 0 || r.objects.TypeName(list) != "list" {
			return 0
		}
		return r.count(list + listLength)
	case "generator":
		return r.randomLength(each)
	}
	return 0
}

// rangeLength is how many numbers range(n) has, from its iterator.
func (r *reader) rangeLength(iterator uint64) int64 {
	var b [4 * cpython.WordSize]byte
	if cpython.ReadAt(r.mem, iterator+rangeFields, b[:]) != nil {
		return 0
	}
	if r.l.Version.Minor == 11 {
		if cpython.Word(b[:], cpython.WordSize) != 0 || cpython.Word(b[:], 2*cpython.WordSize) != 1 {
			return 0
		}
		return bounded(cpython.Word(b[:], 3*cpython.WordSize))
	}
	start, step, left := cpython.Word(b[:], 0), cpython.Word(b[:], cpython.WordSize), cpython.Word(b[:], 2*cpython.WordSize)
	if step != 1 || start > maxSamples || left > maxSamples {
		return 0
	}
	return bounded(start + left)
}

// randomLength is how many samples a RandomSampler draws: as many as the data has, or as it was given.
func (r *reader) randomLength(generator uint64) int64 {
	sampler, ok := r.generatorLocal(generator, "RandomSampler.__iter__", "self")
	if !ok {
		return 0
	}
	given, err := r.objects.Attribute(sampler, "_num_samples")
	if err != nil {
		return 0
	}
	if r.objects.TypeName(given) != "NoneType" {
		value, _ := r.objects.Integer(given)
		return bounded(uint64(value))
	}
	n, ok := r.generatorLocal(generator, "RandomSampler.__iter__", "n")
	if !ok {
		return 0
	}
	value, _ := r.objects.Integer(n)
	return bounded(uint64(value))
}

// generatorLocal reads a local variable of a generator, whose function is the one of that name in torch's sampler.py.
func (r *reader) generatorLocal(generator uint64, function, name string) (uint64, bool) {
	if r.objects.TypeName(generator) != "generator" {
		return 0, false
	}
	at := generator + r.l.Gen.Frame
	code, err := cpython.ReadWord(r.mem, at+r.l.Frame.Code)
	if err != nil {
		return 0, false
	}
	f := frame{addr: at, code: code &^ r.l.Frame.CodeTag}
	if f.object, err = r.codes.get(f.code); err != nil || f.object.Function != function || !strings.HasSuffix(f.object.File, "torch/utils/data/sampler.py") {
		return 0, false
	}
	value, err := r.local(&f, name)
	return value, err == nil && value != 0
}

func (r *reader) count(addr uint64) int64 {
	n, err := cpython.ReadWord(r.mem, addr)
	if err != nil {
		return 0
	}
	return bounded(n)
}

// bounded is a number of samples; 0 where it can be none.
func bounded(n uint64) int64 {
	if n > maxSamples {
		return 0
	}
	return int64(n)
}
