package view

import (
	"fmt"
	"math"

	"github.com/omni-perf/omni-perf/sidecar/torchtrace/analyses"
)

// headline says the most important things in sentences, the answer first.
func (r *Result) headline() []string {
	var lines []string
	if t := r.table(analyses.TableTemporal); t != nil {
		lines = append(lines, temporalSentence(rowsOf{t}))
	}
	if t := r.table(analyses.TableIdle); t != nil {
		lines = append(lines, idleSentence(rowsOf{t}))
	}
	if t := r.table(analyses.TableOverlap); t != nil {
		if s := overlapSentence(rowsOf{t}); s != "" {
			lines = append(lines, s)
		}
	}
	if t := r.table(analyses.TableStragglers); t != nil {
		if s := stragglerSentence(rowsOf{t}); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

func temporalSentence(t rowsOf) string {
	var idle, all float64
	worst := 0
	for r := range t.Len() {
		idle += t.float("idle_time_us", r)
		all += t.float("kernel_time_us", r)
		if t.float("idle_time_pctg", r) > t.float("idle_time_pctg", worst) {
			worst = r
		}
	}
	if all == 0 {
		return "Nothing ran on a device in " + plural(t.Len(), "rank") + "."
	}
	text := fmt.Sprintf("The device was idle %s of the time", percentText(100*idle/all))
	if t.Len() > 1 {
		text = fmt.Sprintf("The devices of %d ranks were idle %s of the time, rank %d most (%s)",
			t.Len(), percentText(100*idle/all), t.int("rank", worst), percentText(t.float("idle_time_pctg", worst)))
	}
	return text + "."
}

var idleWords = map[string]string{
	"host_wait":   "the host had not launched the next work yet",
	"kernel_wait": "the next kernel was only queued behind the last",
	"other":       "work was launched, but waited for something else (another stream, a collective, a copy)",
}

func idleSentence(t rowsOf) string {
	sums := map[string]float64{}
	var all float64
	for r := range t.Len() {
		us := t.float("idle_time_us", r)
		sums[t.text("idle_category", r)] += us
		all += us
	}
	top, most := "", 0.0
	for _, category := range []string{"host_wait", "other", "kernel_wait"} {
		if sums[category] > most {
			top, most = category, sums[category]
		}
	}
	if top == "" {
		return "No stream had a gap."
	}
	return fmt.Sprintf("%s of the streams' idle time: %s.", percentText(100*most/all), idleWords[top])
}

func overlapSentence(t rowsOf) string {
	var sum float64
	n := 0
	for r := range t.Len() {
		if p := t.float("comp_comm_overlap_pctg", r); !math.IsNaN(p) {
			sum += p
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the communication is hidden behind computation.", percentText(sum/float64(n)))
}
