package chart

import (
	"fmt"
	"slices"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// gpuSummary is what the title, the shading and the lanes need of the GPUs.
type gpuSummary struct {
	used    bool // by the recorded program, as far as is known
	title   []scene.Phrase
	badge   string
	idle    map[int][]timeline.Interval // by the device's index
	allIdle []timeline.Interval         // every device idle at once
}

func gpusOf(r *report.View) gpuSummary {
	g := gpuSummary{idle: make(map[int][]timeline.Interval)}
	if len(r.Devices) == 0 {
		return g
	}
	var busy, idle, unknown float64
	var used []int
	for _, d := range r.Devices {
		if d.Simulated {
			g.badge = "simulated GPU"
		}
		if d.Used {
			used = append(used, d.Number)
			busy += report.Seconds(d.BusyNS)
			idle += report.Seconds(d.IdleNS)
			unknown += report.Seconds(d.UnknownNS)
		}
	}
	g.used = len(used) > 0 && r.Idle != nil
	if !g.used {
		g.title = []scene.Phrase{{Text: gpuNames(len(r.Devices), r.Devices[0].Number) + " not used", Tone: scene.Muted, Face: scene.Sans}}
		return g
	}
	name := gpuNames(len(used), used[0])
	if busy+idle <= 0 {
		g.title = []scene.Phrase{{Text: name + " activity unknown", Tone: scene.Muted, Face: scene.Sans}}
		return g
	}
	each, n := "", float64(len(used))
	if n > 1 {
		each = " on average"
	}
	g.title = []scene.Phrase{
		{Text: name + " busy " + words.Percent(busy/(busy+idle)), Tone: scene.Good, Face: scene.Bold},
		{Text: "idle " + words.Seconds(idle/n) + each, Tone: scene.Warn, Face: scene.Bold},
	}
	if unknown > 0.02*(busy+idle) {
		g.title = append(g.title, scene.Phrase{Text: "unknown " + words.Seconds(unknown/n), Tone: scene.Muted, Face: scene.Sans})
	}
	for i, d := range r.Idle.Devices {
		idle := intervalsOf(d.Intervals)
		g.idle[d.Device] = idle
		if i == 0 {
			g.allIdle = idle
		} else {
			g.allIdle = timeline.Common(g.allIdle, idle)
		}
	}
	return g
}

func gpuNames(n, index int) string {
	if n == 1 {
		return fmt.Sprintf("GPU %d", index)
	}
	return fmt.Sprintf("%d GPUs", n)
}

// shortGPU is a device's name without its maker and memory: "H100", "RTX 4090".
func shortGPU(name string) string {
	words := strings.Fields(words.Clean(name, 60))
	for len(words) > 1 && slices.Contains([]string{"NVIDIA", "AMD", "Tesla", "GeForce", "Quadro", "Graphics", "Instinct"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 1 && words[0] == "RTX" {
		return words[0] + " " + words[1]
	}
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
