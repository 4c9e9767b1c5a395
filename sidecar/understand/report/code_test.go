package report

import (
	"strings"
	"testing"
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
