package origin

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// ByName judges a file by its name alone. Traces shorten names by the folders of sys.path
// ("torch/nn/modules/module.py", "threading.py"): a relative name is the standard library's or a
// known package's by its first part, else the user's own.
func ByName(file string) Origin {
	file = strings.ReplaceAll(file, `\`, "/")
	o := byPath(file)
	if o.Owner != Module || strings.HasPrefix(file, "/") || strings.HasPrefix(file, "~") {
		return o
	}
	switch top := topLevel(file); {
	case standardModules()[top]:
		return Origin{Standard, top}
	case shortened[top]:
		return Origin{Library, top}
	}
	return o
}

// libraryPath finds the folder of the standard library in a path: lib/python3.12/threading.py, and
// not a user's folder that is called python3_projects.
var libraryPath = regexp.MustCompile(`/lib(?:64)?/python3(?:\.\d+)?t?/`)

// cellFile is what ipykernel and IPython call the code of cells.
var cellFile = regexp.MustCompile(`/ipykernel_\d+/\d+\.py$|^<ipython-input-|^<cell line: `)

// byPath judges by what installers and interpreters have in common; what remains is a Module's.
func byPath(file string) Origin {
	switch {
	case cellFile.MatchString(file):
		return Origin{Owner: Cell}
	case strings.HasPrefix(file, "<frozen "):
		return Origin{Interpreter, topLevel(strings.ReplaceAll(strings.Trim(file[len("<frozen "):], ">"), ".", "/"))}
	case file == "" || strings.HasPrefix(file, "<"):
		return Origin{Owner: Generated} // "<string>", "<__array_function__ internals>", "<eval_with_key>.3"
	}
	slashed := strings.ReplaceAll(file, `\`, "/")
	for _, packages := range []string{"site-packages/", "dist-packages/"} {
		at := strings.LastIndex(slashed, packages)
		if at < 0 || at > 0 && slashed[at-1] != '/' {
			continue
		}
		rest := slashed[at+len(packages):]
		if egg, inner, ok := strings.Cut(rest, "/"); ok && strings.HasSuffix(egg, ".egg") {
			rest = inner
		}
		if top := topLevel(rest); top == "omni_perf" {
			return Origin{Ours, top}
		} else {
			return Origin{Library, top}
		}
	}
	if found := libraryPath.FindStringIndex(slashed); found != nil {
		return Origin{Standard, topLevel(slashed[found[1]:])}
	}
	return Origin{Owner: Module}
}

// topLevel is the name that the first part of a relative path is imported by.
func topLevel(rest string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	if strings.HasPrefix(rest, "google/colab/") { // google is a namespace of many packages
		return "google.colab"
	}
	first, _, _ = strings.Cut(first, ".") // six.py, _ssl.cpython-312-x86_64-linux-gnu.so
	return first
}

// standard.txt is sys.stdlib_module_names of CPython 3.11 and 3.15 together.
//
//go:embed standard.txt
var standardText string

var standardModules = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	for _, name := range strings.Fields(standardText) {
		names[name] = true
	}
	return names
})

// shortened are packages whose names nobody gives a folder of their own.
var shortened = map[string]bool{
	"torch": true, "torchvision": true, "torchaudio": true, "torchtext": true, "torchdata": true, "torch_geometric": true,
	"triton": true, "functorch": true, "torchmetrics": true, "numpy": true, "scipy": true, "pandas": true, "sklearn": true,
	"matplotlib": true, "PIL": true, "cv2": true, "tqdm": true, "transformers": true, "accelerate": true, "diffusers": true,
	"peft": true, "trl": true, "tokenizers": true, "huggingface_hub": true, "safetensors": true, "timm": true, "deepspeed": true,
	"lightning": true, "lightning_fabric": true, "pytorch_lightning": true, "megatron": true, "apex": true, "xformers": true,
	"flash_attn": true, "bitsandbytes": true, "ray": true, "jax": true, "jaxlib": true, "flax": true, "optax": true,
	"tensorflow": true, "keras": true, "IPython": true, "ipykernel": true, "tornado": true, "traitlets": true, "zmq": true,
	"wandb": true, "tensorboard": true, "tensorboardX": true, "omni_perf": true, "hydra": true, "omegaconf": true,
}
