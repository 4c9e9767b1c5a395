package api

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// messages lists every message of the contract, nested ones included.
func messages() []protoreflect.MessageDescriptor {
	var all []protoreflect.MessageDescriptor
	var add func(protoreflect.MessageDescriptors)
	add = func(ds protoreflect.MessageDescriptors) {
		for i := range ds.Len() {
			all = append(all, ds.Get(i))
			add(ds.Get(i).Messages())
		}
	}
	add(File_omni_perf_proto.Messages())
	return all
}

// fill sets every field of m to a value that distinguishes it from its neighbours.
func fill(m protoreflect.Message, seed int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		seed++
		if f.IsList() {
			list := m.Mutable(f).List()
			for range 2 {
				if f.Message() != nil {
					fill(list.AppendMutable().Message(), seed)
				} else {
					list.Append(scalar(f, seed))
				}
			}
		} else if f.Message() != nil {
			fill(m.Mutable(f).Message(), seed)
		} else {
			m.Set(f, scalar(f, seed))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor, seed int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprintf("%s <%d> \"&\" \u202e\x00 é", f.Name(), seed))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0, 0xff, byte(seed)})
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(-seed))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1<<31 + uint32(seed))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1<<60 + int64(seed)) // beyond a float64's whole numbers
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(seed) / 3)
	}
	panic("a kind of field the contract did not use: " + f.Kind().String())
}

func TestBothCodecsCarryEveryMessage(t *testing.T) {
	for _, name := range []string{"proto", "json"} {
		codec := encoding.GetCodecV2(name)
		if codec == nil {
			t.Fatalf("codec %q is not registered", name)
		}
		for _, d := range messages() {
			want := dynamicpb.NewMessage(d)
			fill(want, 1)
			data, err := codec.Marshal(proto.Message(want))
			if err != nil {
				t.Errorf("%s: marshal %s: %v", name, d.Name(), err)
				continue
			}
			got := dynamicpb.NewMessage(d)
			if err := codec.Unmarshal(data, got); err != nil {
				t.Errorf("%s: unmarshal %s: %v", name, d.Name(), err)
			} else if !proto.Equal(got, want) {
				t.Errorf("%s: %s came back as %v, want %v", name, d.Name(), got, want)
			}
		}
	}
}

// The golden file holds every message as the JSON codec writes it; the
// extension's contract test reads the same file.
func TestJSONContract(t *testing.T) {
	all := make(map[string]json.RawMessage)
	for _, d := range messages() {
		m := dynamicpb.NewMessage(d)
		fill(m, 1)
		text, err := protojson.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(string(d.FullName()), "omni_perf.v1.")] = text
	}
	got, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "messages.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the contract's JSON changed; see the difference with go test ./sidecar/api -update && git diff")
	}
}

func TestUnmarshalJSONFromPython(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", `{"text": "x = 1"}`, "x = 1"},
		{"number for a 64-bit integer", `{"text": "n", "startedNs": 1234}`, "n"},
		{"unknown field", `{"text": "n", "fromTheFuture": [1, {"a": null}]}`, "n"},
		{"pair", `{"text": "\ud83d\ude00"}`, "😀"},
		{"lone high", `{"text": "a\ud83db"}`, "a\ufffdb"},
		{"lone low", `{"text": "a\udc80b"}`, "a\ufffdb"},
		{"two highs then a low", `{"text": "\ud83d\ud83d\ude00"}`, "\ufffd😀"},
		{"high before another escape", `{"text": "\ud83d\n"}`, "\ufffd\n"},
		{"high at the end", `{"text": "\uD83D"}`, "\ufffd"},
		{"escaped backslash before ud800", `{"text": "\\ud800"}`, `\ud800`},
	} {
		var m BeginRequest
		data := mem.BufferSlice{mem.SliceBuffer(c.in)}
		if err := (jsonCodec{}).Unmarshal(data, &m); err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if m.Text != c.want {
			t.Errorf("%s: text %q, want %q", c.name, m.Text, c.want)
		}
	}
}

func FuzzUnmarshalJSON(f *testing.F) {
	f.Add([]byte(`{"text":"\ud83d\ude00\udc00","sources":[{"file":"\\ud"}]}`))
	f.Add([]byte(`{"startedNs":"12"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		// Whatever encoding/json can read as an object of strings must not be
		// refused for its surrogates.
		object, err := json.Marshal(map[string]string{"text": "x"})
		if err != nil {
			t.Fatal(err)
		}
		var loose struct{ Text string }
		wellFormed := json.Unmarshal(append(append([]byte(`{"text":"`), text...), `"}`...), &loose) == nil
		if wellFormed && !strings.Contains(string(text), `"`) {
			object = append(append([]byte(`{"text":"`), text...), `"}`...)
		}
		var m BeginRequest
		err = (jsonCodec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(object)}, &m)
		if err != nil && strings.Contains(err.Error(), "invalid escape code") {
			t.Errorf("%q: %v", object, err)
		}
		_ = (jsonCodec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(append([]byte(nil), text...))}, &m)
	})
}
