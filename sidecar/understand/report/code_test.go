package report

import (
	"strings"
	"testing"

	"github.com/omni-perf/omni-perf/sidecar/understand/origin"
)

// Installed code has a kind that its user recognises, by the package it is of and, where a
// part of a package does something else, by that.
func TestInstalledCodeHasAKind(t *testing.T) {
	const site = "home/ann/venv/lib/python3.12/site-packages/"
	for file, want := range map[string]Code{
		"PIL/Image.py":                        CodePicture,
		"matplotlib/axes/_axes.py":            CodePicture,
		"mpl_toolkits/mplot3d/axes3d.py":      CodePicture,
		"plotly/io/_html.py":                  CodePicture,
		"seaborn/axisgrid.py":                 CodePicture,
		"pandas/core/frame.py":                CodeFramework,
		"transformers/trainer.py":             CodeFramework,
		"torch/nn/modules/module.py":          CodeFramework,
		"sklearn/ensemble/_forest.py":         CodeFramework,
		"requests/sessions.py":                CodeIO,
		"urllib3/connectionpool.py":           CodeIO,
		"sqlalchemy/engine/base.py":           CodeIO,
		"boto3/session.py":                    CodeIO,
		"botocore/client.py":                  CodeIO,
		"torch/serialization.py":              CodeIO,
		"torch/utils/data/dataloader.py":      CodeData,
		"datasets/arrow_dataset.py":           CodeData,
		"torch/cuda/streams.py":               CodeDevice,
		"pandas_profiling/report.py":          CodeOther, // another package, whose name begins the same
		"requestsmonitor/__init__.py":         CodeOther,
		"somebody/plotly/requests/pandas.py":  CodeOther,
		"rich/console.py":                     CodeOther,
		"../urllib/request.py":                CodeIO, // of the standard library
		"../pickle.py":                        CodeIO,
		"../dataclasses.py":                   CodeOther,
		"torch/utils/data/_utils/fetch.py":    CodeData,
		"transformers/models/bert/modules.py": CodeFramework,
	} {
		name := site + file
		if rest, standard := strings.CutPrefix(file, "../"); standard {
			name = "usr/lib/python3.12/" + rest
		}
		if got := CodeByName(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A trace's close-up colours by these, its tables charge by origin.ByName: names without folders.
func TestCodeOfShortenedNames(t *testing.T) {
	for file, want := range map[string]Code{
		"vllm/worker.py": CodeOther, "polars/frame.py": CodeFramework, "einops/einops.py": CodeOther, "requests/api.py": CodeIO,
		"composer/trainer.py": CodeOther, "yaml/loader.py": CodeOther, "attr/_make.py": CodeOther, "datasets/arrow_dataset.py": CodeData,
		"lightning/app.py": CodeUser, "train.py": CodeUser, "model.py": CodeUser, "/tmp/torchinductor_u/a/b.py": CodeOther,
	} {
		if got := CodeByName(file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
		if own := origin.ByName(file).Own(); own != want.Own() {
			t.Errorf("%s is own %v in one and %v in the other", file, own, want.Own())
		}
	}
}
