package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// The errors of Read that a caller may want to tell apart. Their texts are for users.
var (
	ErrNoReport = errors.New("it is no report of omni_perf")
	ErrOlder    = errors.New("it was recorded by an older version of omni_perf: record again")
	ErrNewer    = errors.New("it was recorded by a newer version of omni_perf: update this one")
)

// maxText bounds what a compressed document may unpack to.
const maxText = 1 << 30

// Read reads a document, JSON or the gzip of it, and checks it. What it does not know
// in it, it passes over.
func Read(text []byte) (*View, error) {
	text, err := Unpack(text)
	if err != nil {
		return nil, err
	}
	var head struct {
		Document string          `json:"document"`
		Version  int             `json:"version"`
		First    json.RawMessage `json:"schema_version"` // of version 1
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	switch {
	case head.Document == "" && head.First != nil, head.Document == Kind && head.Version < Version:
		return nil, ErrOlder
	case head.Document == Kind && head.Version > Version:
		return nil, ErrNewer
	case head.Document != Kind:
		return nil, ErrNoReport
	}
	doc := new(Document)
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return Check(doc)
}

// Unpack returns the JSON of a document, which may be in gzip.
func Unpack(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		return text, nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	text, err = io.ReadAll(io.LimitReader(zip, maxText+1))
	if err == nil && len(text) > maxText {
		err = errors.New("it is larger than any report")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	return text, nil
}

// Pack writes a document as JSON in gzip, at its fastest: it is on the way from a
// cell's end to its chart.
func Pack(d *Document) ([]byte, error) {
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(zip).Encode(d); err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	return out.Bytes(), nil
}
