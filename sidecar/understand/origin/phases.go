package origin

import "slices"

// Phase is a part of a training that a function belongs to, with all that it calls.
type Phase uint8

// The phases. What is none of the others is OtherPhase.
const (
	OtherPhase   Phase = iota
	StartUp            // before the training began: imports, models, processes that find each other
	Loading            // the next batch: loading, or waiting for the loader's workers
	Transfer           // of a batch to the device
	Forward            // the model and its loss
	Backward           // gradients
	Optimizer          // the update, with clipping, scaling and schedules
	ZeroGrad           // clears the gradients
	Logging            // figures, progress bars
	Evaluation         // validation, with its own batches
	Checkpoint         // saves or loads the state
	Callbacks          // of a framework, as far as they are nothing else
	Compilation        // makes code at run time
	CompiledStep       // one call of a function that was compiled as a whole: the model, its gradients and mostly the update, and the wait for it
	NumPhases    = iota
)

var phaseIDs = [NumPhases]string{"other", "start-up", "data", "transfer", "forward", "backward", "optimizer", "zero_grad", "logging", "evaluation", "checkpoint", "callbacks", "compilation", "compiled_step"}

// String returns the phase's id.
func (p Phase) String() string { return phaseIDs[min(int(p), NumPhases-1)] }

// PhaseIDs are the ids of all phases, by Phase.
func PhaseIDs() []string { return slices.Clone(phaseIDs[:]) }

// within says in which phases a phase can begin: a loader's own calls of a network are part of
// loading, a validation's batches part of the validation, while an optimizer may call a closure
// that runs the model. A phase that is not listed for another stays part of it.
var within = [NumPhases][]Phase{
	StartUp:      {OtherPhase},
	Loading:      {OtherPhase, Logging, Callbacks}, // a progress bar is around the loader that it iterates over
	Transfer:     {OtherPhase, Loading, Callbacks}, // loaders of frameworks do it at the end
	Forward:      {OtherPhase, Optimizer},
	Backward:     {OtherPhase, Forward, Optimizer}, // frameworks' training_step
	Optimizer:    {OtherPhase, Forward, Backward},  // the last: optimizers in the backward pass
	ZeroGrad:     {OtherPhase, Forward, Optimizer},
	Logging:      {OtherPhase, Forward},
	Evaluation:   {OtherPhase, Logging, Callbacks},
	Checkpoint:   {OtherPhase, Logging, Callbacks, Evaluation},
	Callbacks:    {OtherPhase, Forward, Optimizer},
	CompiledStep: {OtherPhase, Logging, Callbacks}, // a progress bar, or a callback, waits for the loss
	Compilation:  {OtherPhase, Loading, Transfer, Forward, Backward, Optimizer, ZeroGrad, Logging, Evaluation, Callbacks, CompiledStep},
}

// Within reports whether the phase can begin in a call that is part of another one.
func (p Phase) Within(outer Phase) bool { return slices.Contains(within[p], outer) }

// phaseWords are the names of the phases in libraries.txt. Words for meanings that are a phase
// by themselves are there, too.
var phaseWords = map[string]Phase{
	"batch": Loading, "transfer": Transfer, "forward": Forward, "update": Optimizer, "zero-grad": ZeroGrad, "log": Logging,
	"evaluate": Evaluation, "callback": Callbacks, "no-phase": OtherPhase,
	"load": Loading, "load-here": Loading, "load-workers": Loading, "backward": Backward, "optimizer-step": Optimizer, "checkpoint": Checkpoint,
	"compile": Compilation, "import": StartUp, "set-up": StartUp,
}

// ownFunctions is the module of libraries.txt for the user's own code: functions that are called
// so in most programs.
const ownFunctions = "<own>"

// Phase returns the phase that begins with a call of a frame's function, OtherPhase for none.
func (f *Files) Phase(file, function string) Phase {
	if function == "<module>" { // it is imported, and does nothing of what it is for
		return OtherPhase
	}
	facts := f.facts(file)
	if facts.Own() {
		return ownCode().Phase(function)
	}
	return facts.known.Phase(function)
}

// Phase returns the phase of a function of the module, by its qualified name: the one of the longest
// module, and there the last line's.
func (k Known) Phase(function string) (p Phase) {
	for _, l := range k.lines {
		if _, ok := l.fits(function); ok && l.hasPhase {
			p = l.phase
		}
	}
	return p
}

func ownCode() Known {
	var k Known
	for _, l := range libraries().exact[ownFunctions] {
		k.add(l, 1)
	}
	return k
}
