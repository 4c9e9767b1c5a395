package kineto

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// expand lists the files that paths name, each once, sorted inside a folder.
func expand(paths []string, formats *Formats) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	add := func(file string) {
		if !seen[filepath.Clean(file)] {
			seen[filepath.Clean(file)] = true
			files = append(files, file)
		}
	}
	for _, path := range paths {
		matches := []string{path}
		if _, err := os.Stat(path); err != nil {
			if matches, _ = filepath.Glob(path); len(matches) == 0 {
				return nil, fmt.Errorf("%s: no such file or folder", path)
			}
		}
		for _, match := range matches {
			inside, err := listFolder(match, formats)
			if err != nil {
				return nil, err
			}
			for _, file := range inside {
				add(file)
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no trace inside (*.json, *.json.gz, *.sqlite, *.xplane.pb)", strings.Join(paths, ", "))
	}
	return files, nil
}

// IsTraceName reports whether a folder's file may be a trace of torch.profiler.
func IsTraceName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".json.gz")
}

// listFolder lists a folder's traces; a file lists itself.
func listFolder(path string, formats *Formats) ([]string, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		if info, e := os.Stat(path); e == nil && !info.IsDir() {
			return []string{path}, nil
		}
		return nil, fmt.Errorf("listing traces: %w", err)
	}
	var names, files []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if formats != nil {
		return formats.Listed(path, names), nil
	}
	for _, name := range names {
		if IsTraceName(name) {
			files = append(files, filepath.Join(path, name))
		}
	}
	return files, nil
}
