package chart

import (
	"github.com/omni-perf/omni-perf/sidecar/show/chart/scene"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// phasePaints are the colours of a training's phases in the bar of a step.
var phasePaints = map[string]scene.Paint{
	origin.Loading.String():      scene.PaintData,
	origin.Transfer.String():     scene.PaintDevice,
	origin.Forward.String():      scene.PaintNative,
	origin.Backward.String():     scene.PaintPython,
	origin.Optimizer.String():    scene.PaintCell,
	origin.ZeroGrad.String():     scene.PaintUser,
	origin.Logging.String():      scene.PaintTraffic,
	origin.Evaluation.String():   scene.PaintPicture,
	origin.Checkpoint.String():   scene.PaintIO,
	origin.Callbacks.String():    scene.PaintGIL,
	origin.Compilation.String():  scene.PaintGPUMemory,
	origin.CompiledStep.String(): scene.PaintFramework,
}

// phasePaint is the colour of a phase; what is none of those above has that of other code.
func phasePaint(id string) scene.Paint {
	if p, ok := phasePaints[id]; ok {
		return p
	}
	return scene.PaintOther
}
