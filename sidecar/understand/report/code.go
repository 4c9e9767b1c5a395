package report

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/measure/timeline"
	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// code tells whose code a frame is, and of installed code what it does.
func (n *names) code(f timeline.Frame) Code {
	from := n.origins.Of(f.File)
	if f.Phase == timeline.PhaseFigures && !from.Own() {
		return CodePicture
	}
	return codeOf(from, f.File)
}

// CodeByName is the code of a file of which only the name is known, as in the traces of
// other tools.
func CodeByName(file string) Code { return codeOf(origin.ByName(file), "/"+file) }

func codeOf(from origin.Origin, file string) Code {
	switch from.Owner {
	case origin.Cell, origin.Script:
		return CodeCell
	case origin.Module:
		return CodeUser
	}
	file = strings.ReplaceAll(file, "\\", "/")
	for _, r := range partCodes {
		if strings.Contains(file, r.part) {
			return r.code
		}
	}
	if code, ok := packageCodes[from.Package]; ok {
		return code
	}
	return CodeOther
}

// partCodes are parts of packages that do something else than the rest; the first
// match counts.
var partCodes = []struct {
	part string
	code Code
}{
	{"/torch/utils/data/", CodeData},
	{"/torchvision/datasets/", CodeData},
	{"/torchvision/io/", CodeData},
	{"/tensorflow/python/data/", CodeData},
	{"/torch/cuda/", CodeDevice},
	{"/torch/serialization.py", CodeIO},
	{"/asyncio/selector_events.py", CodeIO},
	{"/asyncio/streams.py", CodeIO},
}

// packageCodes are packages by the name they are imported by.
var packageCodes = codesOf(map[Code]string{
	CodeData: "datasets webdataset torchdata litdata",
	CodeFramework: "torch torchvision torchaudio torch_geometric numpy scipy sklearn pandas polars pyarrow jax jaxlib flax optax tensorflow keras " +
		"transformers tokenizers sentence_transformers diffusers peft lightning pytorch_lightning accelerate xgboost lightgbm catboost " +
		"statsmodels numba sympy networkx skimage spacy nltk gensim optuna",
	CodePicture: "matplotlib mpl_toolkits matplotlib_inline seaborn plotly kaleido bokeh altair plotnine PIL imageio cv2",
	CodeDevice:  "triton cupy pynvml",
	CodeIO: "socket ssl http urllib pickle gzip bz2 lzma zipfile tarfile shutil sqlite3 requests urllib3 httpx httpcore aiohttp websockets " +
		"boto3 botocore s3fs fsspec gcsfs huggingface_hub h5py openpyxl sqlalchemy psycopg2 psycopg pymysql pymongo redis duckdb safetensors",
})

func codesOf(lists map[Code]string) map[string]Code {
	codes := make(map[string]Code)
	for code, list := range lists {
		for _, name := range strings.Fields(list) {
			codes[name] = code
		}
	}
	return codes
}
