package jupyter

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func testSigner(t *testing.T, key string) signer {
	t.Helper()
	s, err := newSigner(Connection{Key: key, SignatureScheme: "hmac-sha256"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	s := testSigner(t, "secret")
	want := Message{
		Identities: [][]byte{[]byte("kernel.1.status")},
		Header:     newHeader("s", "status"),
		Parent:     newHeader("s", "execute_request"),
		Content:    json.RawMessage(`{"execution_state":"idle"}`),
		Buffers:    [][]byte{{0, 1}, {}},
	}
	frames, err := s.encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.decode(frames)
	if err != nil {
		t.Fatal(err)
	}
	if got.Header != want.Header || got.Parent != want.Parent || string(got.Content) != string(want.Content) ||
		len(got.Buffers) != 2 || string(got.Identities[0]) != "kernel.1.status" {
		t.Errorf("decoded %+v, want %+v", got, want)
	}
}

// The signature of a message that jupyter_client's Session wrote with the key
// "a0436f6c-1916-498b-8eb9-e81ab9368e84"-like text: HMAC-SHA256 over the four parts.
func TestSignatureIsHMACOverTheFourParts(t *testing.T) {
	s := testSigner(t, "key")
	got := string(s.sign([][]byte{[]byte("The quick brown "), []byte("fox jumps over "), []byte("the lazy "), []byte("dog")}))
	const want = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8" // the RFC-style known answer
	if got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	s := testSigner(t, "secret")
	good, err := s.encode(Message{Header: newHeader("s", "status")})
	if err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(good)
	forged[len(forged)-1] = []byte(`{"execution_state":"busy"}`)
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   error
	}{
		{"no frames", nil, ErrNoDelimiter},
		{"no delimiter", good[1:], ErrNoDelimiter},
		{"too few parts", good[:4], ErrShort},
		{"changed content", forged, ErrSignature},
	} {
		if _, err := s.decode(c.frames); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestDecodeTakesMessagesWithoutTopic(t *testing.T) {
	s := testSigner(t, "")
	frames, err := s.encode(Message{Header: newHeader("s", "iopub_welcome")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.decode(frames)
	if err != nil || m.Header.MsgType != "iopub_welcome" || len(m.Identities) != 0 {
		t.Errorf("got %+v, %v; want an unsigned message without a topic", m, err)
	}
}

func TestParseConnection(t *testing.T) {
	const good = `{"shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":5,"ip":"127.0.0.1","key":"k","transport":"tcp","signature_scheme":"hmac-sha256"}`
	c, err := ParseConnection([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.endpoint(c.IOPubPort); got != "bounded-tcp://127.0.0.1:2" {
		t.Errorf("endpoint %q", got)
	}
	if got := (Connection{Transport: "ipc", IP: "/run/k"}).endpoint(7); got != "bounded-ipc:///run/k-7" {
		t.Errorf("ipc endpoint %q", got)
	}
	for _, c := range []struct{ name, text, want string }{
		{"no JSON", "nonsense", "not a connection file"},
		{"encrypted", strings.Replace(good, `{`, `{"curve_publickey":"x",`, 1), "CurveZMQ"},
		{"other transport", strings.Replace(good, `"tcp"`, `"udp"`, 1), "neither tcp nor ipc"},
		{"no address", strings.Replace(good, `127.0.0.1`, ``, 1), "no ip"},
		{"wrong port", strings.Replace(good, `"iopub_port":2`, `"iopub_port":70000`, 1), "out of range"},
		{"other signature", strings.Replace(good, `hmac-sha256`, `crc32`, 1), "not known"},
	} {
		if _, err := ParseConnection([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

func TestBundlePartsAreADisplaysContent(t *testing.T) {
	data, metadata, transient, err := NewBundle([]byte("<b>1</b>"), []byte("1"), "id-1").Parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{data, `{"text/html":"\u003cb\u003e1\u003c/b\u003e","text/plain":"1"}`},
		{metadata, `{}`},
		{transient, `{"display_id":"id-1"}`},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	s, _ := newSigner(Connection{SignatureScheme: "hmac-sha256"})
	o := &Observer{sign: s, events: make(chan Event, 8), ready: make(chan struct{}), cells: map[string]*cell{}}
	f.Add([]byte("topic"), []byte("<IDS|MSG>"), []byte(`{"msg_type":"execute_input"}`), []byte(`{"msg_id":"1"}`), []byte(`{"code":"x","execution_count":1}`))
	f.Add([]byte("<IDS|MSG>"), []byte(""), []byte(`{"msg_type":"status"}`), []byte(`{"msg_type":"execute_request"}`), []byte(`{"execution_state":"idle"}`))
	f.Fuzz(func(t *testing.T, a, b, header, parent, content []byte) {
		o.take([][]byte{a, b, {}, header, parent, []byte("{}"), content})
		for len(o.events) > 0 {
			<-o.events
		}
		if len(o.cells) > keptCells {
			t.Fatalf("%d cells are kept", len(o.cells))
		}
	})
}

func FuzzParseConnection(f *testing.F) {
	f.Add([]byte(`{"iopub_port":2,"control_port":4,"ip":"127.0.0.1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := ParseConnection(text); err == nil && (c.IOPubPort <= 0 || c.IP == "") {
			t.Fatalf("accepted %+v", c)
		}
	})
}
