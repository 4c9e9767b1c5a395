package jupyter

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"
)

// delimiter separates routing frames from the message.
var delimiter = []byte("<IDS|MSG>")

// Errors of Decode.
var (
	ErrNoDelimiter = errors.New("no <IDS|MSG> frame")
	ErrShort       = errors.New("fewer frames than a message has")
	ErrSignature   = errors.New("the signature does not match the connection file's key")
)

// Header names a message.
type Header struct {
	MsgID    string `json:"msg_id"`
	MsgType  string `json:"msg_type"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Version  string `json:"version"`
	// SubshellID names the subshell that a request is for; empty: the kernel's own shell.
	SubshellID string `json:"subshell_id,omitempty"`
}

// sent is the time that the sender has written; zero: none that can be read.
func (h Header) sent() time.Time {
	t, err := time.Parse(time.RFC3339, h.Date)
	if err != nil {
		return time.Time{}
	}
	return t
}

// Message is one message of any channel. Parent is the zero Header when it
// answers nothing.
type Message struct {
	Identities [][]byte // routing frames; on IOPub the topic, which may be absent
	Header     Header
	Parent     Header
	Metadata   json.RawMessage
	Content    json.RawMessage
	Buffers    [][]byte
}

// isOurs reports whether it is a display of the extension's, as a chart: it is not what the cell printed. The extension
// marks such messages.
func (m Message) isOurs() bool {
	var metadata struct {
		Ours string `json:"omni_perf"`
	}
	return json.Unmarshal(m.Metadata, &metadata) == nil && metadata.Ours == "display"
}

// signer makes and checks signatures; the zero key signs nothing.
type signer struct {
	key  []byte
	hash func() hash.Hash
}

func newSigner(c Connection) (signer, error) {
	hashes := map[string]func() hash.Hash{
		"hmac-sha256": sha256.New,
		"hmac-sha384": sha512.New384,
		"hmac-sha512": sha512.New,
	}
	h, ok := hashes[c.SignatureScheme]
	if !ok {
		return signer{}, fmt.Errorf("signature scheme %q is not known", c.SignatureScheme)
	}
	return signer{key: []byte(c.Key), hash: h}, nil
}

// sign returns the hexadecimal signature of the four JSON parts.
func (s signer) sign(parts [][]byte) []byte {
	if len(s.key) == 0 {
		return []byte{}
	}
	mac := hmac.New(s.hash, s.key)
	for _, p := range parts {
		mac.Write(p)
	}
	return hex.AppendEncode(nil, mac.Sum(nil))
}

// decode reads the frames of one message. The content is checked to be JSON
// only when it is used.
func (s signer) decode(frames [][]byte) (Message, error) {
	at := -1
	for i, f := range frames {
		if bytes.Equal(f, delimiter) {
			at = i
			break
		}
	}
	if at < 0 {
		return Message{}, ErrNoDelimiter
	}
	rest := frames[at+1:]
	if len(rest) < 5 {
		return Message{}, ErrShort
	}
	parts := rest[1:5]
	if len(s.key) > 0 && !hmac.Equal(rest[0], s.sign(parts)) {
		return Message{}, ErrSignature
	}
	m := Message{Identities: frames[:at], Metadata: parts[2], Content: parts[3], Buffers: rest[5:]}
	if err := json.Unmarshal(parts[0], &m.Header); err != nil {
		return Message{}, fmt.Errorf("header: %w", err)
	}
	if err := json.Unmarshal(parts[1], &m.Parent); err != nil {
		return Message{}, fmt.Errorf("parent header: %w", err)
	}
	return m, nil
}

// readCut reads a message of which a body was dropped; cut is false for a whole one.
// The size is that of content and buffers, as they were sent.
func readCut(frames [][]byte) (m Message, size int64, cut bool) {
	at := slices.IndexFunc(frames, func(f []byte) bool { return bytes.Equal(f, delimiter) })
	for i, f := range frames {
		n, dropped := droppedSize(f)
		cut = cut || dropped
		if !dropped {
			n = int64(len(f))
		}
		if at >= 0 && i >= at+5 { // behind signature, header, parent header and metadata
			size += n
		}
	}
	if cut && at >= 0 && len(frames) > at+4 {
		m.Metadata = frames[at+4]
		_ = json.Unmarshal(frames[at+2], &m.Header) // left empty: of no type
		_ = json.Unmarshal(frames[at+3], &m.Parent)
	}
	return m, size, cut
}
