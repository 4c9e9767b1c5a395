package pystack

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/cpython"
	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

const maxCodes = 1 << 16 // cached code objects; beyond, the cache starts anew

// codeObject is what is known of one code object of the target.
type codeObject struct {
	*cpython.Code
	operations map[int32]operation // of the instructions looked at
	role       role
	awaited    *timeline.Object // what a thread waits for in it by a condition; nil: nothing
	loads      loads
	locals     map[string]int    // numbers of the local variables looked for; -1 for none of that name
	handlers   *cpython.Handlers // of exceptions; nil: not looked at

	read       uint64 // the cache's count of reads when it was first seen
	nameless   bool   // a module's or a statement's, or of a function without a name in one
	born       uint64 // the cache's epoch when it was first seen
	epoch      uint64 // the cache's when it was last compared
	generation uint64 // likewise
}

// codeCache keeps the code objects seen, by address. One goroutine at a time.
type codeCache struct {
	objects *cpython.Objects
	byAddr  map[uint64]*codeObject
	epoch   uint64 // grows a few times a second
	// generation is the interpreter's own count of code objects freed, where counts
	// says that there is one: unless it moves, all are what they were.
	generation uint64
	counts     bool
	reads      uint64 // code objects read, to notice when one has changed
	// library has what was read of the code objects of other processes that run on in
	// the same program, which was forked; nil: there is none.
	library library
}

func newCodeCache(objects *cpython.Objects) *codeCache {
	return &codeCache{objects: objects, byAddr: make(map[uint64]*codeObject), epoch: 1}
}

// get returns the code object at addr, as it was when it was last looked at.
func (c *codeCache) get(addr uint64) (*codeObject, error) {
	if known := c.byAddr[addr]; known != nil {
		return known, nil
	}
	c.reads++
	if code := c.adopt(addr); code != nil {
		return code, nil
	}
	read, err := c.objects.Code(addr)
	if err != nil {
		return nil, err
	}
	code := &codeObject{
		Code: read, role: roleOf(read.Function, read.File), awaited: awaitedIn(read.Function, read.File), loads: loadsOf(read.Function, read.File), nameless: strings.HasPrefix(read.Function, "<"),
		read: c.reads, born: c.epoch, epoch: c.epoch, generation: c.generation,
	}
	c.keep(code)
	c.library.add(code)
	return code, nil
}

func (c *codeCache) keep(code *codeObject) {
	if len(c.byAddr) >= maxCodes {
		clear(c.byAddr)
	}
	c.byAddr[code.Addr] = code
}

// drop forgets a code object that is another by now.
func (c *codeCache) drop(code *codeObject) {
	if c.byAddr[code.Addr] == code {
		delete(c.byAddr, code.Addr)
	}
}

// settledEpochs is for how long a code object must have been there to be taken for
// one that stays.
const settledEpochs = 2

// doubtful recognises a code object that must be compared at each sample that shows it: an
// address identifies nothing, since the next code object takes it, and often its frame
// the last one's place.
//
// From 3.14 on the interpreter counts the code objects it has freed: while it frees
// none, all are what they were. Before that, those are doubtful that were first seen
// a moment ago, and for ever the code of modules and of cells' statements with the
// nameless functions in it, all of which is freed when it has run. Of the others on
// a stack one is compared at each sample, in turn, and each where its frame is a
// new one, once an epoch.
func (c *codeCache) doubtful(code *codeObject) bool {
	if c.counts {
		return code.generation != c.generation
	}
	return code.nameless || c.epoch-code.born < settledEpochs
}

// stale recognises a code object that must be compared where its frame is a new one.
func (c *codeCache) stale(code *codeObject) bool {
	return c.doubtful(code) || !c.counts && code.epoch != c.epoch
}

// confirmed notes that a code object was found to be what it was.
func (c *codeCache) confirmed(code *codeObject) { code.epoch, code.generation = c.epoch, c.generation }
