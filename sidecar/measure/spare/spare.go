// Package spare decides how much of its work a collector does by what CPU time nobody else uses.
//
// In flows how many CPUs are free, out flows a share; every collector that can do with less uses it. Who finds out
// what is free, and what a collector leaves out, is not the package's.
package spare

import "time"

// CPUs says how many nobody uses now, of the cores that the target may use. Of nil it is not known: all count as free.
type CPUs func() (free, cores float64)

const (
	// Of each recording the first stretch has all that collectors do: short ones need it, and of a long one it is
	// a small part. From then on there is enough, and what they use where no CPU is free is taken from the program.
	fullFor = 20 * time.Second
	// Where less than the lower of these CPUs is free, and more in between, it is taken from the program:
	// threads that wake each other up leave gaps which are too short for others, a third of two CPUs together. A program of one thread
	// leaves a whole one.
	freeFrom, freeAll = 0.8, 0.9
)

// Falling is the part of what a recording of some length is worth: of one longer than enough each second says less of the whole, down to least.
func Falling(so, enough time.Duration, least float64) float64 {
	return min(max(enough.Seconds()/so.Seconds(), least), 1)
}

// Share is how much of what it could leave out a collector does when it has gone on for so long: 1 where a CPU is free, 0 where
// none is. cores is 0 where it is not known.
func (c CPUs) Share(so time.Duration) (share, cores float64) {
	if so < fullFor || c == nil {
		return 1, 0
	}
	free, cores := c()
	return min(max((free-freeFrom)/(freeAll-freeFrom), 0), 1), cores
}

// Interval is from often, where a CPU is free, to seldom.
func (c CPUs) Interval(so, often, seldom time.Duration) time.Duration {
	share, _ := c.Share(so)
	return seldom - time.Duration(share*float64(seldom-often))
}
