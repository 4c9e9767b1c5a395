package findings

import (
	"math"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/traces/table"
)

// Thresholds: below them a finding is too small to begin with.
const (
	leastIdle   = 0.02 // devices that are busy for 98 % have nothing to gain here
	leastPlace  = 0.10 // a line that a tenth of the idle time or of the time goes to
	leastLoader = 0.05 // waiting for data for a twentieth of the steps
	leastDrain  = 0.05 // a twentieth of the idle time
	leastCalls  = 0.10 // a tenth of the devices' idle time
	leastUnused = 0.25 // a quarter of the reserved memory

	leastInstead = 0.10 // only copying or communicating for a tenth of the time
	leastDelay   = 0.05 // a twentieth of the time that the others waited for a further rank
	nearlyWorst  = 0.5  // of the longest delay: below it a further rank is not worth a sentence
)

// deviceIdle is what there is of every trace with device events.
func deviceIdle(t Tables) *Finding {
	ranks, devices := t.get(analyses.TableTemporal), t.get(analyses.TableTemporalByDevice)
	if ranks.Len() == 0 {
		return nil
	}
	known := devices.Len() > 0
	if !known {
		devices = ranks // HTA's modes, or a table not asked for
	}
	var idle, all float64
	worst, least := 0, 0
	share := func(row int) float64 {
		return ratio(devices.FloatAt("idle_time_us", row), devices.FloatAt("kernel_time_us", row))
	}
	for r := range devices.Len() {
		idle += devices.FloatAt("idle_time_us", r)
		all += devices.FloatAt("kernel_time_us", r)
		if share(r) > share(worst) {
			worst = r
		}
		if share(r) < share(least) {
			least = r
		}
	}
	f := &Finding{
		ID: DeviceIdle, Value: ratio(idle, all), Unit: Share, Lost: ratio(idle, all),
		Evidence: map[string]float64{
			"idle_us": idle, "device_us": all, "ranks": float64(ranks.Len()),
			"highest_share": share(worst), "lowest_share": share(least),
		},
	}
	if known {
		f.Evidence["devices"] = float64(devices.Len())
	}
	for _, outside := range []string{"before_us", "after_us"} {
		if ranks.Column(outside) == nil { // HTA's modes
			continue
		}
		for r := range ranks.Len() {
			f.Evidence[outside] += ranks.FloatAt(outside, r)
		}
	}
	if devices.Len() > 1 && share(worst) > share(least) { // whose is the highest share
		f.Rank, f.Device = pointer(devices.IntAt("rank", worst)), pointer(devices.IntAt("device", worst))
	}
	return f
}

// worthACause recognises traces whose devices were idle long enough to ask why.
func worthACause(t Tables) bool {
	idle := deviceIdle(t)
	return idle != nil && idle.Value >= leastIdle
}

// sumBy adds up a column by the text of another.
func sumBy(t *table.Table, key, value string) (sums map[string]float64, all float64) {
	sums = map[string]float64{}
	for r := range t.Len() {
		v := t.FloatAt(value, r)
		if math.IsNaN(v) {
			continue
		}
		sums[t.TextAt(key, r)] += v
		all += v
	}
	return sums, all
}

// idleCause is the largest cause of the devices' idle time.
func idleCause(t Tables) *Finding {
	sums, all := sumBy(t.get(analyses.TableIdleCauses), "cause", "device_idle_us")
	if all <= 0 || !worthACause(t) {
		return nil
	}
	f := &Finding{ID: IdleCause, Unit: Share, Evidence: t.onDevices(map[string]float64{"idle_us": all})}
	for _, cause := range analyses.IdleCauses() {
		f.Evidence[cause+"_us"] = sums[cause]
		if part := ratio(sums[cause], all); part > f.Value {
			f.Value, f.Name = part, cause
		}
	}
	f.Lost = t.ofIdle(f.Value)
	return f
}

// launchCalls is the devices' idle time during which the host was inside the call that
// launched the next work; the call is the one that most of it went to, on all ranks.
func launchCalls(t Tables) *Finding {
	idle, all := sumBy(t.get(analyses.TableIdleCauses), "cause", "device_idle_us")
	calls := t.get(analyses.TableCalls)
	type sums struct{ inside, count, total, longest, slow float64 }
	by := map[string]sums{}
	row := map[string]int{} // where most of it was
	top := ""
	for r := range calls.Len() {
		name, s := calls.TextAt("call", r), by[calls.TextAt("call", r)]
		by[name] = sums{s.inside + calls.FloatAt("inside_us", r), s.count + calls.FloatAt("count", r),
			s.total + calls.FloatAt("total_us", r), max(s.longest, calls.FloatAt("max_us", r)), s.slow + calls.FloatAt("slow_calls", r)}
		if at, ok := row[name]; !ok || calls.FloatAt("inside_us", r) > calls.FloatAt("inside_us", at) {
			row[name] = r
		}
		if top == "" || by[name].inside > by[top].inside {
			top = name
		}
	}
	if top == "" || !worthACause(t) {
		return nil
	}
	inside, s := idle[analyses.CauseInsideCall], by[top]
	return &Finding{
		ID: LaunchCalls, Value: ratio(inside, all), Unit: Share, Threshold: leastCalls,
		Name: top, Place: parsed(calls.TextAt("caller", row[top])), Lost: t.ofIdle(ratio(inside, all)),
		Evidence: t.onDevices(map[string]float64{
			"idle_us": inside, "calls": s.count, "mean_us": ratio(s.total, s.count), "max_us": s.longest, "slow_calls": s.slow,
		}),
	}
}

// synchronising is the call whose waiting left the devices without work for
// longest.
func synchronising(t Tables) *Finding {
	calls := t.get(analyses.TableCalls)
	type sums struct{ drained, total, count, gaps float64 }
	by := map[string]sums{}
	row := map[string]int{} // where most of it was
	top := ""
	for r := range calls.Len() {
		name := calls.TextAt("call", r)
		if calls.TextAt("synchronising", r) == "" {
			continue
		}
		s := by[name]
		by[name] = sums{s.drained + calls.FloatAt("drained_us", r), s.total + calls.FloatAt("total_us", r),
			s.count + calls.FloatAt("count", r), s.gaps + calls.FloatAt("drained_gaps", r)}
		if at, ok := row[name]; !ok || calls.FloatAt("total_us", r) > calls.FloatAt("total_us", at) {
			row[name] = r
		}
		if top == "" || by[name].drained > by[top].drained {
			top = name
		}
	}
	idle := deviceIdle(t)
	if top == "" || !worthACause(t) {
		return nil
	}
	s := by[top]
	return &Finding{
		ID: Synchronising, Value: ratio(s.drained, idle.Evidence["idle_us"]), Unit: Share, Threshold: leastDrain,
		Name: top, Place: parsed(calls.TextAt("caller", row[top])), Lost: ratio(s.drained, idle.Evidence["device_us"]),
		Evidence: t.onDevices(map[string]float64{"idle_us": s.drained, "gaps": s.gaps, "calls": s.count, "total_us": s.total}),
	}
}

// hiddenCommunication is the share of the time of communication during which computation ran beside it, over all ranks that
// communicate. HolisticTraceAnalysis's modes have each rank's share alone, whose mean it is there.
func hiddenCommunication(t Tables) *Finding {
	overlap := t.get(analyses.TableOverlap)
	var hidden, whole, sum float64
	n := 0
	for r := range overlap.Len() {
		p := overlap.FloatAt("comp_comm_overlap_pctg", r) / 100
		if math.IsNaN(p) {
			continue
		}
		sum += p
		n++
		if overlap.Column("communication_us") != nil {
			us := overlap.FloatAt("communication_us", r)
			hidden, whole = hidden+p*us, whole+us
		}
	}
	if n == 0 {
		return nil
	}
	f := &Finding{ID: HiddenComm, Value: sum / float64(n), Unit: Share, Evidence: map[string]float64{"ranks": float64(n), "communication_us": whole}}
	if whole > 0 {
		f.Value = ratio(hidden, whole)
		return f
	}
	kernels, _ := sumBy(t.get(analyses.TableKernels), "kernel_type", "sum_us")
	f.Evidence["communication_us"] = kernels[analyses.Communication.String()]
	return f
}

// stragglers are the rank that made the others wait for longest and those that come near it, of a twentieth of
// the time and more. A collective is over for all when the last rank has come: what one other rank waited is what
// the run lost.
func stragglers(t Tables) (list []*Finding) {
	s := t.get(analyses.TableStragglers)
	whole := 0.0 // of one device
	if idle := deviceIdle(t); idle != nil {
		whole = idle.Evidence["device_us"] / max(1, idle.Evidence["devices"], idle.Evidence["ranks"])
	}
	worst := 0.0
	for r := range s.Len() {
		worst = max(worst, s.FloatAt("delay_us", r))
	}
	for r := range s.Len() {
		delay := s.FloatAt("delay_us", r)
		if delay <= 0 || delay < worst && (delay < nearlyWorst*worst || ratio(delay, whole) < leastDelay) {
			continue
		}
		list = append(list, &Finding{
			ID: Straggler, Value: delay, Unit: Micros, Rank: pointer(s.IntAt("rank", r)), Lost: min(ratio(delay, whole), 1),
			Evidence: map[string]float64{
				"times_last": s.FloatAt("times_last", r), "collectives": s.FloatAt("collectives", r), "ranks": float64(s.Len()), "device_us": whole,
			},
		})
	}
	return list
}

// communicating and copying are what the devices did in place of computing.
func communicating(t Tables) *Finding {
	return t.insteadOfComputing(Communicating, "exposed_communication_us")
}

func copying(t Tables) *Finding { return t.insteadOfComputing(Copying, "copying_us") }

// insteadOfComputing is the share of the devices' time that a column has.
func (t Tables) insteadOfComputing(id ID, column string) *Finding {
	devices := t.get(analyses.TableTemporalByDevice)
	if devices.Column(column) == nil {
		return nil
	}
	var us, compute, whole float64
	share := func(row int) float64 {
		return ratio(devices.FloatAt(column, row), devices.FloatAt("kernel_time_us", row))
	}
	most := 0
	for r := range devices.Len() {
		us += devices.FloatAt(column, r)
		compute += devices.FloatAt("compute_time_us", r)
		whole += devices.FloatAt("kernel_time_us", r)
		if share(r) > share(most) {
			most = r
		}
	}
	if whole <= 0 {
		return nil
	}
	f := &Finding{
		ID: id, Value: ratio(us, whole), Unit: Share, Threshold: leastInstead, Lost: ratio(us, whole),
		Evidence: map[string]float64{
			"time_us": us, "compute_share": ratio(compute, whole), "devices": float64(devices.Len()),
			"ranks": float64(t.get(analyses.TableTemporal).Len()), "highest_share": share(most),
		},
	}
	if devices.Len() > 1 && share(most) > f.Value {
		f.Rank, f.Device = pointer(devices.IntAt("rank", most)), pointer(devices.IntAt("device", most))
	}
	return f
}
