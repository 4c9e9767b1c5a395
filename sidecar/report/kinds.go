package report

import (
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/origin"
	"github.com/omni-perf/omni-perf/sidecar/timeline"
)

// Kind is whose code a frame is, which is also its colour.
type Kind string

// The kinds of frames.
const (
	KindCell      Kind = "cell"      // code typed into the notebook, or the script itself
	KindUser      Kind = "user"      // the user's own modules
	KindData      Kind = "data"      // data loading: torch.utils.data, datasets, tf.data …
	KindFramework Kind = "framework" // torch, numpy, sklearn, pandas, transformers …
	KindPicture   Kind = "picture"   // plots and pictures: matplotlib, plotly, PIL …
	KindDevice    Kind = "device"    // calls that drive a GPU: cuda, triton, cudnn
	KindIO        Kind = "io"        // files, sockets, databases, serialisation
	KindOther     Kind = "other"     // the standard library and other packages
)

// kind tells whose code a frame is, and of installed code what it does.
func (n *names) kind(f timeline.Frame) Kind {
	from := n.origins.Of(f.File)
	switch from.Owner {
	case origin.Cell, origin.Script:
		return KindCell
	case origin.Module:
		return KindUser
	}
	if f.Phase == timeline.PhaseFigures {
		return KindPicture
	}
	file := strings.ReplaceAll(f.File, "\\", "/")
	for _, r := range partKinds {
		if strings.Contains(file, r.part) {
			return r.kind
		}
	}
	if kind, ok := packageKinds[from.Package]; ok {
		return kind
	}
	return KindOther
}

// partKinds are parts of packages that do something else than the rest; the first
// match counts.
var partKinds = []struct {
	part string
	kind Kind
}{
	{"/torch/utils/data/", KindData},
	{"/torchvision/datasets/", KindData},
	{"/torchvision/io/", KindData},
	{"/tensorflow/python/data/", KindData},
	{"/torch/cuda/", KindDevice},
	{"/torch/serialization.py", KindIO},
	{"/asyncio/selector_events.py", KindIO},
	{"/asyncio/streams.py", KindIO},
}

// packageKinds are packages by the name they are imported by.
var packageKinds = kindsOf(map[Kind]string{
	KindData: "datasets webdataset torchdata litdata",
	KindFramework: "torch torchvision torchaudio torch_geometric numpy scipy sklearn pandas polars pyarrow jax jaxlib flax optax tensorflow keras " +
		"transformers tokenizers sentence_transformers diffusers peft lightning pytorch_lightning accelerate xgboost lightgbm catboost " +
		"statsmodels numba sympy networkx skimage spacy nltk gensim optuna",
	KindPicture: "matplotlib mpl_toolkits matplotlib_inline seaborn plotly kaleido bokeh altair plotnine PIL imageio cv2",
	KindDevice:  "triton cupy pynvml",
	KindIO: "socket ssl http urllib pickle gzip bz2 lzma zipfile tarfile shutil sqlite3 requests urllib3 httpx httpcore aiohttp websockets " +
		"boto3 botocore s3fs fsspec gcsfs huggingface_hub h5py openpyxl sqlalchemy psycopg2 psycopg pymysql pymongo redis duckdb safetensors",
})

func kindsOf(lists map[Kind]string) map[string]Kind {
	kinds := make(map[string]Kind)
	for kind, list := range lists {
		for _, name := range strings.Fields(list) {
			kinds[name] = kind
		}
	}
	return kinds
}
