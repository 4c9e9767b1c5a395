package origin

// Meanings is a set of what the functions of a library mean to whoever reads a stack. Which function
// has which is in libraries.txt.
type Meanings uint64

// What a thread does that has such a function on its stack.
const (
	Compiles       Meanings = 1 << iota // makes code at run time, not runs it
	Checkpoints                         // saves or loads the state of a training
	Draws                               // makes pictures
	Loads                               // makes batches of data
	LoadsHere                           // … in the process that trains
	LoadsElsewhere                      // … in workers, which it waits for
	PassesResults                       // hands over what other threads or processes have made
	Communicates                        // exchanges data with other ranks
	Synchronizes                        // waits for the GPU
	Launches                            // gives the GPU work, or computes on the CPU
	AsksUser                            // waits for input
	Spawns                              // forks, and waits until the child executes its program
	WaitsForChild                       // starts processes and waits for them
	Joins                               // waits for the end of a thread
	WaitsForPool                        // waits for workers, which may be threads or processes
	AsksDatabase
	UsesNetwork
	Selects // waits in an event loop for whatever comes first, or is what suspends a task until then
	Sleeps
	Locks          // waits for another thread
	RunsModels     // belongs to a framework that would use a GPU
	SendsOutput    // sends a notebook's output
	Requests       // runs once for each request to a server
	Queries        // runs once for each query of a database
	RunsForOthers  // is the loop of an executor's thread
	RunsMain       // finds and starts the main module
	Imports        // is the import system's
	OptimizerStep  // is one step of an optimizer
	CompilesByType // compiles once for each combination of argument types
)

// What a worker does.
const (
	LoaderLoop    Meanings = CompilesByType << (1 + iota) // the function that a data loader's worker runs in all its life
	PoolLoop                                              // likewise of a pool of processes
	Transports                                            // hands tasks and results over, and does no work of its own
	Receives                                              // reads from the other end's pipe
	TakesTask                                             // waits for the next task
	RunsTask                                              // calls a task's own code
	StartsProcess                                         // is the first function of a worker that is its own: what is below it is its owner's
	Forks                                                 // forks: in the worker, too, until it comes to its own first function
)

// What a rank does together with the others.
const (
	Collective   Meanings = Forks << (1 + iota) // returns when others have come, too
	SetsUp                                      // makes process groups
	TearsDown                                   // ends them
	RunsBackward                                // computes gradients
	Replicates                                  // belongs to a model of which each rank has a copy, or a part
)

// What memory is for that is allocated there.
const (
	Optimizes   Meanings = Replicates << (1 + iota) // an optimizer's state
	Distributes                                     // buffers for what ranks exchange
	MakesParameters
)

// Samples is of what a loader's own process does for its workers, too: it asks the sampler for the next batch's indices.
const Samples = Decorates << 1

// Computes is of statistics and the like: that a picture's library asks for them makes them no drawing.
const Computes = Samples << 1

// KeepsConnections is of what a program holds on to for its requests, and that uses a connection again.
const KeepsConnections = Computes << 1

// Customizes is what runs a sitecustomize as the interpreter starts: omni-perf run places one.
const Customizes = KeepsConnections << 1

// RunsCompiled is of calls of a function that a framework has compiled as a whole: jax.jit's. What it does has no frames once it is compiled.
const RunsCompiled = Customizes << 1

// WaitsForCompiled is of what waits for the result of such a call, and for nothing else.
const WaitsForCompiled = RunsCompiled << 1

// What a notebook's kernel does around a cell's code.
const (
	Prepares          Meanings = MakesParameters << (1 + iota)
	RunsCallbacks              // of events, before and after the cell
	PrintsTraceback            //
	FlushesFigures             // draws what the cell has left open
	RunsTorchProfiler          // ours: starts torch.profiler, or stops it and writes its trace
	Displays                   // is called with the value of a cell's last expression
	RunsCellMagic              // calls a cell magic, which has the cell's text for its body
	RunsCode                   // calls a cell's code, and then what prints its exception
	RunsLoop                   // runs event loops or starts programs
	TurnsLoop                  // is a turn of the event loop: what is below it is a task
	AwaitsTasks                // awaits until other tasks have ended
	StartsThread               // is at the root of every thread
	Decorates                  // was made by a decorator, and calls the function that was asked for
)

// words are the names of the meanings in libraries.txt.
var words = map[string]Meanings{
	"compile": Compiles, "checkpoint": Checkpoints, "draw": Draws, "load": Loads, "load-here": LoadsHere, "load-workers": LoadsElsewhere, "sampler": Samples, "compute": Computes,
	"results": PassesResults, "communication": Communicates, "sync": Synchronizes, "launch": Launches, "input": AsksUser, "spawn": Spawns,
	"child": WaitsForChild, "join": Joins, "pool": WaitsForPool, "database": AsksDatabase, "network": UsesNetwork, "select": Selects,
	"sleep": Sleeps, "lock": Locks, "gpu-framework": RunsModels, "output": SendsOutput, "request": Requests, "query": Queries, "session": KeepsConnections,
	"executor": RunsForOthers, "run-main": RunsMain, "import": Imports, "optimizer-step": OptimizerStep, "compile-by-type": CompilesByType,
	"loader-loop": LoaderLoop, "pool-loop": PoolLoop, "transport": Transports, "receive": Receives, "take": TakesTask, "runs-task": RunsTask,
	"starts-process": StartsProcess, "forks": Forks,
	"collective": Collective, "set-up": SetsUp, "tear-down": TearsDown, "backward": RunsBackward, "replica": Replicates,
	"optimizer": Optimizes, "distributed": Distributes, "parameters": MakesParameters,
	"prepare": Prepares, "callbacks": RunsCallbacks, "traceback": PrintsTraceback, "figures": FlushesFigures, "torch-trace": RunsTorchProfiler, "display": Displays,
	"cell-magic": RunsCellMagic, "runs-code": RunsCode, "runner": RunsLoop, "turn": TurnsLoop, "awaits-tasks": AwaitsTasks, "starts-thread": StartsThread, "decorator": Decorates, "compiled-call": RunsCompiled, "compiled-result": WaitsForCompiled, "customizes": Customizes,
}

// Kind is what a library's code is for, as pictures colour it.
type Kind uint8

const (
	Other Kind = iota
	Framework
	Data
	Picture
	Device
	IO
)

var kinds = map[string]Kind{"framework": Framework, "data": Data, "picture": Picture, "device": Device, "io": IO}

// traits are what a line of libraries.txt says of a module as a whole.
type traits uint8

const (
	shared   traits = 1 << iota // users call folders of their own so: a name alone is known by a longer line only
	kernel                      // a notebook's kernel serves its cells by it
	ours                        // omni_perf's extension
	checkout                    // a file of this name is this module also below an unknown folder, if its name is all that is known
	anywhere                    // … whatever is known of the installation
	tasks                       // tasks wait in its functions, whose names say what for
)

var traitWords = map[string]traits{"shared": shared, "kernel": kernel, "ours": ours, "checkout": checkout, "anywhere": anywhere, "tasks": tasks}
