package pystack

import "time"

// Spare says how many CPUs nobody uses now, of the cores that the target may use.
type Spare func() (free, cores float64)

const (
	// Of each recording the first stretch has all of the budget: short ones need their samples, and of a
	// long one it is a small part. From then on it has samples enough, and where no CPU is free the budget is
	// cut, since what sampling uses there is taken from the program.
	fullFor = 20 * time.Second
	// Where less than the lower of these CPUs is free, and more in between, sampling takes from the program:
	// threads that wake each other up leave gaps which are too short for others.
	freeFrom, freeAll = 0.65, 0.85
	// What the sampling of the target, and that of its descendants, may take of each CPU.
	takenByOne, takenByMany = 0.004, 0.003
)

// limit of what sampling may use of a core.
type limit struct {
	budget float64 // at most
	taken  float64 // of each CPU, where none is free
}

// now is the share of a core that sampling may use when it has gone on for so long.
func (l limit) now(so time.Duration, spare Spare) float64 {
	if so < fullFor || spare == nil {
		return l.budget
	}
	free, cores := spare()
	least := min(l.budget, l.taken*cores)
	return least + (l.budget-least)*min(max((free-freeFrom)/(freeAll-freeFrom), 0), 1)
}
