package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// benchCase is one folder of traces.
type benchCase struct {
	name      string
	folder    string
	ranks     []int
	megabytes float64 // of JSON
}

// prepare makes the folders to measure under cache: the trace alone, and eight
// copies with their ranks renumbered. It returns the trace's JSON.
func prepare(source, cache string) (text []byte, cases []benchCase, err error) {
	if text, err = gunzip(source); err != nil {
		return nil, nil, err
	}
	one, eight := filepath.Join(cache, "one"), filepath.Join(cache, "eight")
	if err := writeRank(text, one, 1); err != nil {
		return nil, nil, err
	}
	mb := float64(len(text)) / 1e6
	cases = []benchCase{{"V100 resnet", one, []int{1}, mb}, {"8 × V100 resnet", eight, nil, 8 * mb}}
	for rank := range 8 {
		if err := writeRank(text, eight, rank); err != nil {
			return nil, nil, err
		}
		cases[1].ranks = append(cases[1].ranks, rank)
	}
	plain := filepath.Join(cache, "trace.json")
	return text, cases, os.WriteFile(plain, text, 0o600)
}

func gunzip(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// writeRank writes the trace as another rank, unless that is there already.
func writeRank(text []byte, folder string, rank int) error {
	path := filepath.Join(folder, fmt.Sprintf("rank%d.json.gz", rank))
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	const old = `"backend": "nccl", "rank": 1,`
	if bytes.Count(text, []byte(old)) != 1 {
		return fmt.Errorf("the trace does not state its rank as expected")
	}
	text = bytes.Replace(text, []byte(old), fmt.Appendf(nil, `"backend": "nccl", "rank": %d,`, rank), 1)
	return writeGzip(path, func(w io.Writer) error { _, err := w.Write(text); return err })
}

func writeGzip(path string, write func(io.Writer) error) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	defer f.Close()
	z, _ := gzip.NewWriterLevel(f, gzip.BestSpeed) // a valid level
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// writeBig writes the trace's events again and again, each time later and with
// correlations and operators of their own, until there are so many bytes.
func writeBig(text []byte, path string, size int64) error {
	start := bytes.Index(text, []byte(`"traceEvents": [`)) + len(`"traceEvents": [`)
	end := bytes.LastIndex(text, []byte("\n  ]"))
	if start < 0 || end < start {
		return fmt.Errorf("the trace has not the expected shape")
	}
	events := string(text[start:end])
	return writeGzip(path, func(w io.Writer) error {
		if _, err := w.Write(text[:start]); err != nil {
			return err
		}
		written := int64(start)
		for i := 0; written < size; i++ {
			shift := strings.NewReplacer(
				`"ts": 1669783`, fmt.Sprintf(`"ts": 1%05d`, 66978+i)+"3",
				`"correlation": `, fmt.Sprintf(`"correlation": %d`, i+1),
				`"External id": `, fmt.Sprintf(`"External id": %d`, i+1))
			if i > 0 {
				io.WriteString(w, ",")
			}
			n, err := shift.WriteString(w, events)
			if err != nil {
				return err
			}
			written += int64(n)
		}
		_, err := w.Write(text[end:])
		return err
	})
}
