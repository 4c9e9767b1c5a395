package cupti

import "fmt"

// reason is why nothing is recorded, or nothing more: enum reason of shim/ring.h.
type reason uint64

const (
	fine reason = iota
	noLibrary
	noSymbol
	versionRefused
	occupied
	cuptiFailed
	badTimes
	mostRecords
	mostSeconds
	otherwise
	deviceMemory
	numReasons
)

// noDriver is CUPTI_ERROR_UNKNOWN, which cuptiGetVersion returned with CUPTI 13.4 where there was no driver.
const noDriver = 999

// sentence says it; code is CUPTI's own error.
func (r reason) sentence(c counts, code uint64) string {
	api, another := c.api, "another profiler"
	if c.first != "" {
		another = "another profiler (" + c.first + ")"
	}
	switch r {
	case noLibrary:
		return "CUPTI (libcupti) was not found: neither loaded, nor among pip's packages beside the ones in use, nor on the system. pip install nvidia-cuda-cupti-cu12, or -cu13, of the CUDA release in use, brings it"
	case noSymbol:
		return "the CUPTI that was found lacks functions that CUDA 11.1 and newer have"
	case versionRefused:
		return fmt.Sprintf("this version of CUPTI (%s) is not used: docs/exact.md says which have what error; another minor release of CUDA has none of them", release(api))
	case occupied:
		return another + " uses CUPTI in this process, and it takes only one at a time"
	case cuptiFailed:
		if code == noDriver {
			return "CUPTI finds no NVIDIA driver that it works with"
		}
		return fmt.Sprintf("CUPTI refused to record (its error %d)", code)
	case badTimes:
		return "CUPTI delivered times that are zero or run backwards, as some versions do after many kernels: nothing after that is used"
	case mostRecords:
		return fmt.Sprintf("as many records were taken as this version of CUPTI (%s) is known to stay reliable for", release(api))
	case otherwise:
		return another + " has CUPTI record events in hardware, or graphs as a whole, for all its users in this process: kernels would be missing"
	case deviceMemory:
		return "the device's memory became scarce, and what CUPTI takes of it may grow: it stopped before the program could run out of it"
	case mostSeconds:
		return fmt.Sprintf("it was recorded for as long as this version of CUPTI (%s) takes no more CPU time for it", release(api))
	}
	return "it ended for a reason that this version of omni_perf does not know"
}

// release names CUDA's release by what cuptiGetVersion returns: 130401 is 13.4 Update 1; before CUDA 13 the
// number does not show it.
func release(api uint32) string {
	if api < 130000 {
		return fmt.Sprintf("API version %d, before CUDA 13", api)
	}
	name := fmt.Sprintf("CUDA %d.%d", api/10000, api/100%100)
	if update := api % 100; update > 0 {
		name += fmt.Sprintf(" Update %d", update)
	}
	return name
}
