package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"

	"github.com/klauspost/compress/gzip"
)

// The errors of Read that a caller may want to tell apart. Their texts are for users.
var (
	ErrNoReport = errors.New("it is no report of omni_perf")
	ErrOlder    = errors.New("it was recorded by an older version of omni_perf: record again")
	ErrNewer    = errors.New("it was recorded by a newer version of omni_perf: update this one")
)

// others are documents of omni_perf that are no reports.
var others = map[string]string{
	"omni_perf.notebook":            "figures of a notebook's cells: omni-perf compare reads them",
	"omni_perf.notebook_comparison": "a comparison of two notebooks",
	"omni_perf.comparison":          "a comparison of reports",
	"omni_perf.analysis":            "an analysis of traces",
}

// Read is ReadFrom for a text that is in memory.
func Read(text []byte) (*View, error) { return ReadFrom(bytes.NewReader(text)) }

// ReadFrom reads a document, JSON or the gzip of it, and checks it. What it does not know
// in it, it passes over unread. It keeps no more of the text at a time than one member of
// the document, and refuses one beyond the limits (limits.go) when it comes to them.
func ReadFrom(src io.Reader) (*View, error) {
	src, err := unpacked(src)
	if err != nil {
		return nil, err
	}
	r := reader{doc: new(Document)}
	if err := strain(src, r.member, r.unknown); err != nil {
		return nil, r.failed(err)
	}
	if err := r.verdict(); err != nil {
		return nil, err
	}
	if r.damage != nil {
		return nil, r.damage
	}
	return Check(r.doc)
}

// reader decodes the members of a document.
type reader struct {
	doc    *Document
	first  bool  // it has schema_version, as version 1 did
	damage error // of the first member that could not be decoded
}

func (r *reader) member(f *field, text []byte) error {
	if r.damage != nil {
		return nil
	}
	into := reflect.ValueOf(r.doc).Elem().FieldByIndex(f.index).Addr().Interface()
	if err := json.Unmarshal(text, into); err != nil {
		r.damage = fmt.Errorf("%w: %s: %w", errDamaged, f.key, err)
	}
	return r.early()
}

func (r *reader) unknown(key []byte) { r.first = r.first || string(key) == "schema_version" }

// early is the verdict as soon as it is sure.
func (r *reader) early() error {
	if r.doc.Document == "" || r.doc.Version == 0 {
		return nil
	}
	return r.verdict()
}

// verdict returns an error unless it is a document that this program reads.
func (r *reader) verdict() error {
	switch d := r.doc; {
	case d.Document == "" && r.first, d.Document == Kind && d.Version < Version:
		return ErrOlder
	case others[d.Document] != "":
		return fmt.Errorf("%w, but %s", ErrNoReport, others[d.Document])
	case d.Document != Kind:
		return ErrNoReport
	case d.Version > Version:
		return ErrNewer
	}
	return nil
}

// failed is the error of a text that could not be read to its end.
func (r *reader) failed(err error) error {
	var unreadable *fs.PathError
	switch {
	case errors.As(err, &unreadable):
		return err
	case errors.Is(err, ErrNewer), errors.Is(err, ErrOlder), errors.Is(err, ErrNoReport):
		return err
	case r.doc.Document == "" && r.first:
		return ErrOlder
	case r.doc.Document == Kind:
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return fmt.Errorf("%w: %w", ErrNoReport, err)
}

// unpacked is a document's text, which may be in gzip.
func unpacked(src io.Reader) (io.Reader, error) {
	in := bufio.NewReader(src)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	return zip, nil
}

// Unpack returns the text of a document that Pack has written.
func Unpack(packed []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the report: %w", err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		return nil, fmt.Errorf("unpack the report: %w", err)
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
