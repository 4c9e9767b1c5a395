package gpu

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const (
	samplesPeriod = 150 * time.Millisecond // often enough to ask the rates within a short gap
	assumedPeriod = 167 * time.Millisecond // of the driver's samples, until measured
	maxPeriod     = time.Second            // nvml.h l. 249: between 1 s and 1/6 s
	overduePeriod = 1500 * time.Millisecond
)

// samples reads NVML's buffer of utilization samples (nvml.h l. 7605). Each
// stands for the time since the one before. Their clock is not documented and
// is found out. While the device is idle the buffer may be dry: a gap is idle
// time where the utilization rates said 0 meanwhile, else it stays unknown.
type samples struct {
	d      *nvmlDevice
	clock  sampleClock
	last   int64         // CLOCK_MONOTONIC of the newest sample; 0 = none yet
	upTo   int64         // end of the newest window
	period time.Duration // median spacing of the samples; 0 = not measured

	// What the rates said since the newest sample: idle from idleFrom on, but
	// busy again at busyAt. 0 = they did not.
	idleFrom, busyAt int64
}

func openSamples(d *nvmlDevice) (Activity, error) {
	s := &samples{d: d, upTo: timeline.Monotonic() - int64(maxPeriod)}
	if _, err := s.fetch(0); err != nil && !errors.Is(err, ErrNoData) {
		return nil, err
	}
	return s, nil
}

func (s *samples) Source() string            { return "NVML sample buffer" }
func (s *samples) Period() time.Duration     { return samplesPeriod }
func (s *samples) Resolution() time.Duration { return s.period }
func (s *samples) Close()                    {}

func (s *samples) Read() ([]Window, error) { return s.read(false) }

// Finish reads what there is. No later sample can contradict, so a stretch the
// rates call idle counts up to now.
func (s *samples) Finish() ([]Window, error) { return s.read(true) }

func (s *samples) read(final bool) ([]Window, error) {
	list, err := s.fetch(s.since())
	if err != nil && !errors.Is(err, ErrNoData) {
		return nil, err
	}
	windows := s.windows(list)
	now := timeline.Monotonic()
	if len(windows) > 0 || now-s.last < 2*s.spacing() {
		return windows, nil
	}
	s.askRates(now)
	overdue := now-s.last >= max(int64(overduePeriod), 5*s.spacing())
	if s.idleFrom == 0 || s.busyAt != 0 || !overdue && !final {
		return nil, nil
	}
	at := now
	if !final {
		at -= s.spacing() // a sample may still come that covers it
	}
	return s.idleUpTo(nil, at), nil
}

// spacing is the period as measured, or as assumed until then.
func (s *samples) spacing() int64 {
	if s.period == 0 {
		return int64(assumedPeriod)
	}
	return int64(s.period)
}

// since is the newest sample's time as the driver wrote it, a little earlier so
// that the clock bridge's error loses none; windows drops what is known.
func (s *samples) since() uint64 {
	if s.last == 0 {
		return 0
	}
	return uint64(max(s.clock.fromMonotonic(s.last)-int64(time.Millisecond), 0) / 1000)
}

// sample is one reading with the driver's own time in nanoseconds.
type sample struct {
	at    int64
	value float64
}

// fetch returns the buffer's samples newer than since (µs), oldest first.
func (s *samples) fetch(since uint64) ([]sample, error) {
	var raw []nvml.Sample
	var kind nvml.ValueType
	err := s.d.api.call("nvmlDeviceGetSamples", func() (code nvml.Return) {
		kind, raw, code = s.d.handle.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, since)
		return code
	})
	if err != nil {
		return nil, err
	}
	var list []sample
	for _, r := range raw {
		// The wrapper does not cut the slice to the count returned.
		if value, ok := sampleValue(kind, r.SampleValue); ok && r.TimeStamp > since {
			list = append(list, sample{at: int64(r.TimeStamp) * 1000, value: value})
		}
	}
	slices.SortStableFunc(list, func(a, b sample) int { return int(max(-1, min(1, a.at-b.at))) })
	return list, nil
}

func sampleValue(kind nvml.ValueType, raw [8]byte) (float64, bool) {
	switch kind {
	case nvml.VALUE_TYPE_UNSIGNED_INT, nvml.VALUE_TYPE_SIGNED_INT:
		value := float64(binary.NativeEndian.Uint32(raw[:]))
		return value, value <= 100
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		value := float64(binary.NativeEndian.Uint64(raw[:]))
		return value, value <= 100
	}
	return 0, false
}

// windows turns samples into windows and remembers how far they reach. A sample
// that follows a gap stands for one period only.
func (s *samples) windows(list []sample) []Window {
	if len(list) == 0 {
		return nil
	}
	s.clock.update(list[len(list)-1].at)
	s.measure(list)
	var out []Window
	for _, one := range list {
		at := s.clock.toMonotonic(one.at)
		if s.last != 0 && at <= s.last+int64(time.Millisecond) {
			continue // known, or the driver's time went backwards
		}
		from := at - s.spacing()
		if s.last != 0 && at-s.last < 2*s.spacing() {
			from = s.last
		} else if s.idleFrom != 0 {
			out = s.idleUpTo(out, from)
		}
		s.last, s.idleFrom, s.busyAt = at, 0, 0
		if from = max(from, s.upTo); from < at {
			w := newWindow(from, at)
			w.Values[Util] = one.value
			out = append(out, w)
			s.upTo = at
		}
	}
	return out
}

// idleUpTo appends the idle stretch the rates have confirmed, up to at.
func (s *samples) idleUpTo(out []Window, at int64) []Window {
	from := max(s.idleFrom, s.upTo)
	if s.busyAt != 0 {
		at = min(at, s.busyAt)
	}
	if from >= at {
		return out
	}
	w := newWindow(from, at)
	w.Values[Util] = 0
	s.upTo = at
	return append(out, w)
}

// askRates notes whether the utilization rates call the device idle. If they
// never disagreed since the last sample, it has been idle since then.
func (s *samples) askRates(now int64) {
	var rates nvml.Utilization
	err := s.d.api.call("nvmlDeviceGetUtilizationRates", func() (code nvml.Return) {
		rates, code = s.d.handle.GetUtilizationRates()
		return code
	})
	idle := err == nil && rates.Gpu == 0
	switch {
	case !idle && s.busyAt == 0:
		s.busyAt = now
	case idle && s.busyAt != 0:
		s.idleFrom, s.busyAt = now-s.spacing(), 0
	case idle && s.idleFrom == 0:
		s.idleFrom = max(s.last, s.upTo)
	}
}

// measure takes the median spacing as the period.
func (s *samples) measure(list []sample) {
	var steps []int64
	for i := 1; i < len(list); i++ {
		if step := list[i].at - list[i-1].at; step > 0 && step <= int64(maxPeriod)*11/10 {
			steps = append(steps, step)
		}
	}
	if len(steps) < 2 && s.period > 0 || len(steps) == 0 {
		return
	}
	slices.Sort(steps)
	s.period = time.Duration(steps[len(steps)/2])
}
