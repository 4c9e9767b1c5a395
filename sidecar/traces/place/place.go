// Package place tells where in Python something happened and whose code that is.
//
// In flow the texts that torch's profiler and memory snapshots write for a
// frame, out flow file, line and function, and whether the file is the user's
// own or belongs to Python or an installed package. It opens no file: traces are
// read on other machines than they were recorded on.
package place

import (
	"regexp"
	"strconv"
	"strings"
)

// Place is a function at a line: where it starts in a trace, where it was in a
// memory snapshot.
type Place struct {
	File     string
	Line     int
	Function string
}

// Parse splits "file.py(12): function". ok is false for what has no file, as
// "<built-in method …>": then Function is the whole text.
func Parse(text string) (p Place, ok bool) {
	end := strings.Index(text, "): ")
	if end < 0 {
		return Place{Function: text}, false
	}
	open := strings.LastIndexByte(text[:end], '(')
	if open < 0 {
		return Place{Function: text}, false
	}
	line, err := strconv.ParseUint(text[open+1:end], 10, 31)
	if err != nil {
		return Place{Function: text}, false
	}
	return Place{File: text[:open], Line: int(line), Function: text[end+3:]}, true
}

// String is the text that Parse reads.
func (p Place) String() string {
	if p.File == "" {
		return p.Function
	}
	return p.File + "(" + strconv.Itoa(p.Line) + "): " + p.Function
}

// Base is the text without the folders of the file.
func (p Place) Base() string {
	p.File = p.File[strings.LastIndexByte(strings.ReplaceAll(p.File, `\`, "/"), '/')+1:]
	return p.String()
}

// Own reports whether a file is the user's own code. The profiler cuts off the
// folders of sys.path, so that an installed package comes as "transformers/…"
// as well as with its whole path.
func Own(file string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	switch {
	case file == "" || file == "??":
		return false
	case strings.HasPrefix(file, "<ipython-"):
		return true
	case strings.HasPrefix(file, "<"): // <frozen os>, <string>, <eval_with_key>.4
		return false
	case installed.MatchString(file):
		return false
	case strings.HasPrefix(file, "/") || strings.HasPrefix(file, "../") || len(file) > 1 && file[1] == ':':
		return !strings.Contains(file, "/bin/") || strings.HasSuffix(file, ".py")
	}
	top, _, _ := strings.Cut(file, "/")
	top = strings.TrimSuffix(top, ".py")
	return !known[top]
}

// installed matches folders that only Python and installed packages have, and
// torch's own sources wherever they are.
var installed = regexp.MustCompile(`(^|/)(site-packages|dist-packages|lib/python\d|python\d[\d.]*/lib|torchinductor_[^/]*)(/|\.|$)` +
	`|(^|/)torch/(nn|autograd|optim|utils|distributed|cuda|profiler|jit|fx|amp|fft|linalg|_[a-z]+)(/|$)` +
	`|(^|/)torch/(_[a-z_]+|functional|hub|library|overrides|random|serialization|storage)\.py$` +
	`|(^|/)Lib/[a-z_]+\.py$` +
	// Packages whose name is as likely a folder of the user's.
	`|^(datasets/(arrow_|formatting|table|iterable_|dataset_dict|features)|lightning/(pytorch|fabric)|evaluate/(module|loading))`)

// known are top-level modules that are nobody's own: the standard library, and
// packages that training code commonly calls.
var known = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(stdlib + packages) {
		set[name] = true
	}
	return set
}()

const packages = `
	torch torchvision torchaudio torchtext torchdata torchtitan torchtune torchrec torchmetrics torchgen torch_xla
	functorch triton apex xformers flash_attn deepspeed fairscale fairseq megatron colossalai horovod
	accelerate transformers diffusers tokenizers peft trl safetensors huggingface_hub bitsandbytes optimum
	sentence_transformers timm vllm sglang flashinfer aiter liger_kernel unsloth unsloth_zoo
	pytorch_lightning lightning_fabric lightning_utilities ignite fastai composer hydra omegaconf
	numpy scipy sklearn pandas pyarrow polars matplotlib seaborn plotly PIL cv2 imageio skimage albumentations kornia
	tensorboard tensorboardX wandb mlflow tqdm rich loguru einops jaxtyping sympy networkx numba cupy jax flax
	fsspec s3fs boto3 botocore requests urllib3 httpx aiohttp certifi yaml click typer attr attrs pydantic pydantic_core
	typing_extensions packaging filelock psutil six cloudpickle dill joblib ray dask zmq tornado traitlets IPython ipykernel
	ipykernel_launcher jupyter_client jupyter_core comm debugpy pluggy pytest _pytest setuptools pkg_resources pip
	omni_perf
`
