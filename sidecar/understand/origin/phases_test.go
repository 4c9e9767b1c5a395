package origin

import (
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
)

// What functions of frameworks and of the user's own begin a phase; a module's code that runs
// because it is imported begins none.
func TestPhasesOfFunctions(t *testing.T) {
	files := New(&timeline.Recording{Target: timeline.Target{Argv: []string{"python", "/home/me/train.py"}}})
	const site = "/v/lib/python3.12/site-packages/"
	for _, c := range []struct {
		file, function string
		want           Phase
	}{
		{site + "torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", Loading},
		{site + "torch/utils/data/dataloader.py", "<module>", OtherPhase},
		{site + "torch/nn/modules/module.py", "Module._wrapped_call_impl", Forward},
		{site + "torch/nn/modules/module.py", "Module.zero_grad", ZeroGrad},
		{site + "torch/nn/modules/module.py", "Module.to", OtherPhase},
		{site + "torch/nn/functional.py", "cross_entropy", Forward},
		{site + "torch/_tensor.py", "Tensor.backward", Backward},
		{site + "torch/autograd/graph.py", "_engine_run_backward", Backward},
		{site + "torch/optim/adamw.py", "AdamW.step", Optimizer},
		{site + "torch/optim/optimizer.py", "Optimizer.zero_grad", ZeroGrad},
		{site + "torch/optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper", Optimizer},
		{site + "torch/optim/lr_scheduler.py", "StepLR.step", Optimizer},
		{site + "torch/autograd/__init__.py", "grad", Backward},
		{site + "torch/autograd/__init__.py", "backward", Backward},
		{site + "torch/_functorch/functional_call.py", "functional_call", Forward},
		{site + "torch/nn/utils/stateless.py", "_functional_call", Forward},
		{site + "torch/nn/utils/clip_grad.py", "clip_grad_norm_", Optimizer},
		{site + "torch/serialization.py", "save", Checkpoint},
		{site + "torch/_dynamo/convert_frame.py", "ConvertFrame.__call__", Compilation},
		{site + "transformers/trainer.py", "Trainer._inner_training_loop", OtherPhase},
		{site + "transformers/trainer.py", "Trainer.compute_loss", Forward},
		{site + "transformers/trainer.py", "Trainer.evaluate", Evaluation},
		{site + "transformers/trainer.py", "Trainer._save_checkpoint", Checkpoint},
		{site + "transformers/trainer_callback.py", "CallbackHandler.call_event", Callbacks},
		{site + "accelerate/utils/operations.py", "send_to_device", Transfer},
		{site + "lightning/pytorch/strategies/strategy.py", "Strategy.training_step", Forward},
		{site + "lightning/pytorch/loops/evaluation_loop.py", "_EvaluationLoop.run", Evaluation},
		{site + "pytorch_lightning/loops/fetchers.py", "_PrefetchDataFetcher.__next__", Loading},
		{site + "keras/src/optimizers/base_optimizer.py", "BaseOptimizer.apply", Optimizer},
		{site + "jax/_src/api.py", "value_and_grad.<locals>.value_and_grad_f", Backward},
		{site + "jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr_dynamic", Compilation},
		{site + "optax/transforms/_combining.py", "chain.<locals>.update_fn", Optimizer},
		{site + "flax/training/train_state.py", "TrainState.apply_gradients", Optimizer},
		{site + "flax/nnx/training/optimizer.py", "Optimizer.update", Optimizer},
		{site + "tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "call_function", OtherPhase}, // each call has it
		{site + "tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "trace_function", Compilation},
		{site + "tensorflow/python/eager/backprop.py", "GradientTape.gradient", Backward},
		{site + "tqdm/std.py", "tqdm.__iter__", Logging},
		{site + "numpy/linalg.py", "evaluate", OtherPhase},
		{"/home/me/train.py", "validate", Evaluation},
		{"/home/me/train.py", "get_batch", Loading},
		{"/home/me/train.py", "train", OtherPhase},
	} {
		if got := files.Phase(c.file, c.function); got != c.want {
			t.Errorf("%s in %s begins %v, want %v", c.function, c.file, got, c.want)
		}
	}
}

func TestPhasesWithinOthers(t *testing.T) {
	for _, c := range []struct {
		inner, outer Phase
		want         bool
		why          string
	}{
		{Forward, Optimizer, true, "an optimizer's closure"},
		{Forward, Backward, false, "activations are computed anew"},
		{Forward, Loading, false, "transforms are modules"},
		{Backward, Forward, true, "a framework's training_step"},
		{Optimizer, Backward, true, "an optimizer in the backward pass"},
		{Loading, Evaluation, false, "a validation's own batches"},
		{Loading, Logging, true, "a progress bar around the loader"},
		{Checkpoint, Callbacks, true, "a callback that saves"},
		{Checkpoint, Loading, false, "a dataset's file is read"},
		{Compilation, Forward, true, "the first step"},
		{Forward, Compilation, false, "a model that is traced"},
		{CompiledStep, Callbacks, true, "a callback that waits for the loss"},
		{CompiledStep, Evaluation, false, "a validation's own calls"},
		{Compilation, CompiledStep, true, "a batch of another shape"},
		{StartUp, Forward, false, "an import in the first step"},
	} {
		if got := c.inner.Within(c.outer); got != c.want {
			t.Errorf("%v within %v (%s): %v, want %v", c.inner, c.outer, c.why, got, c.want)
		}
	}
}
