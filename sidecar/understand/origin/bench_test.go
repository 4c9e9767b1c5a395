package origin

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkByName(b *testing.B) {
	for name, file := range map[string]string{
		"own": "/home/u/project/src/model.py", "installed": "/v/lib/python3.12/site-packages/torch/nn/modules/module.py",
		"short": "torch/nn/modules/module.py", "hostile": strings.Repeat("torch/", 16000) + "x.py", "hostile path": "/" + strings.Repeat("torch/", 16000) + "x.py",
	} {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			for b.Loop() {
				KnownByName(file).Means("f")
			}
		})
	}
}
