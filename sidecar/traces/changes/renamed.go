package changes

import (
	"cmp"
	"slices"

	"github.com/omni-perf/omni-perf/sidecar/traces/analyses"
	"github.com/omni-perf/omni-perf/sidecar/understand/significance"
)

// pair is a kernel under the names that it has in two runs.
type pair struct{ was, now key }

// launchPlace is where a kernel is launched: the operator, and its place among the kernels of its kind of a call of that.
type launchPlace struct {
	operator, does string
	position       int64
}

// renamed pairs kernels that only one run has with those that only the other has, if most of the time of both is in the same places.
func renamed(before, after Tables, old, now map[key]significance.Reading) (pairs []pair) {
	gone, fresh := places(before, old, now), places(after, now, old)
	names := func(of map[string]map[launchPlace]float64, value map[key]significance.Reading) (list []string) {
		for name := range of {
			list = append(list, name)
		}
		slices.SortFunc(list, func(a, b string) int {
			return cmp.Or(cmp.Compare(value[key{Kernel, b}].Value, value[key{Kernel, a}].Value), cmp.Compare(a, b))
		})
		return list
	}
	candidates := names(fresh, now)
	for _, was := range names(gone, old) {
		best, most := -1, 0.0
		for i, name := range candidates {
			if common := inCommon(gone[was], fresh[name]); common > most {
				best, most = i, common
			}
		}
		const enough = 0.5
		if best >= 0 && most >= enough {
			pairs = append(pairs, pair{key{Kernel, was}, key{Kernel, candidates[best]}})
			candidates = slices.Delete(candidates, best, best+1)
		}
	}
	return pairs
}

// places are the shares of the time of a run's kernels by place, of those that the other run has not.
func places(t Tables, own, others map[key]significance.Reading) map[string]map[launchPlace]float64 {
	work := t.get(analyses.TableWorkByStep)
	all, sums := map[string]map[launchPlace]float64{}, map[string]float64{}
	for r := range work.Len() {
		name := work.TextAt("name", r)
		_, is := own[key{Kernel, name}]
		_, known := others[key{Kernel, name}]
		if work.TextAt("kind", r) != analyses.WorkKernel || !is || known || work.TextAt("operator", r) == "" {
			continue
		}
		if all[name] == nil {
			all[name] = map[launchPlace]float64{}
		}
		us := work.FloatAt("us", r)
		all[name][launchPlace{work.TextAt("operator", r), work.TextAt("kernel_type", r), work.IntAt("position", r)}] += us
		sums[name] += us
	}
	for name, of := range all {
		for place := range of {
			of[place] /= max(sums[name], 1e-9)
		}
	}
	return all
}

// inCommon is the share of the time that two kernels have in the same places.
func inCommon(a, b map[launchPlace]float64) (share float64) {
	for place, of := range a {
		share += min(of, b[place])
	}
	return share
}
