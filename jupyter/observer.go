package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
)

// EventKind says what an Observer saw.
type EventKind int

const (
	CellStarted  EventKind = iota // execute_input: the kernel begins a cell
	CellEnded                     // idle of that cell's execute_request
	Restarting                    // the kernel announced a shutdown or a restart
	Disconnected                  // the connection broke: the kernel died, or the network did
)

// Event is one step in the life of a kernel, in the order seen on IOPub.
type Event struct {
	Kind           EventKind
	MsgID          string // of the execute_request
	ExecutionCount int
	Code           string // CellStarted: the cell as typed
	Outcome        string // CellEnded: "ok", "interrupted", or "error: NAME"
	// Unseen: CellEnded of one whose start was not seen: it began before, it was silent, or
	// IOPub lost the message.
	Unseen bool
	// Subshell: the cell runs beside those of the kernel's shell, of which one runs at a time.
	Subshell bool
	At       time.Time // it was read
	// Sent is the kernel's own time of the message about a cell's start or end, however late it is read; zero: not known.
	Sent time.Time
}

// Output is what one cell put out so far: streams, displays, results, errors, without displays of ours.
type Output struct {
	Messages, Bytes int64
	// AtLeast: so many messages came that IOPub, which keeps 1,000 for a slow
	// subscriber, may have dropped some.
	AtLeast bool
}

// keptCells bounds what an Observer remembers of ended cells.
const keptCells = 64

// highWater is ZeroMQ's default limit of a subscriber's queue.
const highWater = 1000

// quiet keeps zmq4 from writing to stderr.
var quiet = zmq4.WithLogger(log.New(io.Discard, "", 0))

// Observer follows a kernel's cells on IOPub. Its methods may be called from any
// goroutine.
type Observer struct {
	connection Connection
	sign       signer
	events     chan Event
	connected  chan struct{}
	ready      chan struct{}

	isConnected, isReady sync.Once

	mu       sync.Mutex
	cells    map[string]*cell
	order    []string // msg_ids, oldest first
	missed   int64    // messages that could not be read
	unsigned int64    // of these, those that another key has signed
	shutdown bool     // was announced
}

type cell struct {
	output  Output
	outcome string
	count   int
	started bool // its CellStarted was sent
}

// Observe subscribes to a kernel's IOPub until ctx ends. It returns at once; a
// kernel that is not there yet, or comes back, is followed when it answers.
func Observe(ctx context.Context, c Connection) (*Observer, error) {
	sign, err := newSigner(c)
	if err = errors.Join(err, register()); err != nil {
		return nil, err
	}
	o := &Observer{
		connection: c, sign: sign, events: make(chan Event, 1024),
		connected: make(chan struct{}), ready: make(chan struct{}), cells: make(map[string]*cell),
	}
	go o.follow(ctx)
	return o, nil
}

// Events sends cells as they start and end. A reader that falls 1,024 events
// behind misses some; output is counted all the same.
func (o *Observer) Events() <-chan Event { return o.events }

// Connected is closed once the kernel's address has answered as IOPub does. Its messages
// are on their way from then on: ZeroMQ answers by itself, whatever the kernel is doing.
func (o *Observer) Connected() <-chan struct{} { return o.connected }

// Ready is closed once a message of the kernel has arrived: its welcome, which ipykernel sends
// from version 7 on, else the first that it sends to everybody.
func (o *Observer) Ready() <-chan struct{} { return o.ready }

// Shutdown reports whether the kernel has announced that it was asked to end, or to restart.
func (o *Observer) Shutdown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shutdown
}

// OtherKey reports whether messages came that the key of the connection file did not sign.
func (o *Observer) OtherKey() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unsigned > 0
}

// Output returns what the cell of that execute_request put out so far; ok is
// false if nothing of it was seen.
func (o *Observer) Output(msgID string) (out Output, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.cells[msgID]
	if !ok {
		return Output{}, false
	}
	out = c.output
	out.AtLeast = out.Messages >= highWater || o.missed > 0
	return out, true
}

// follow reads IOPub until ctx ends, on a new connection whenever one broke.
// zmq4's own reconnection is not used: it reports the loss only when the peer
// is back.
func (o *Observer) follow(ctx context.Context) {
	defer close(o.events)
	for ctx.Err() == nil {
		iopub := zmq4.NewSub(ctx, zmq4.WithDialerMaxRetries(-1), zmq4.WithDialerRetry(100*time.Millisecond), quiet)
		if o.subscribe(iopub) == nil {
			o.isConnected.Do(func() { close(o.connected) })
			o.read(ctx, iopub)
			o.emit(Event{Kind: Disconnected, At: time.Now()})
		}
		iopub.Close()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// subscribe takes all messages, and those of a topic that is ours alone: a kernel welcomes only
// who subscribes to what nobody has yet (XPUB). Topics are sent in the order of their names, so
// that the welcome says that all messages come.
func (o *Observer) subscribe(iopub zmq4.Socket) error {
	for _, topic := range []string{"", "omni_perf." + rand.Text()} {
		if err := iopub.SetOption(zmq4.OptionSubscribe, topic); err != nil {
			return err
		}
	}
	// It waits for the kernel as long as ctx lives.
	return dial(func() error { return iopub.Dial(o.connection.endpoint(o.connection.IOPubPort)) })
}

func (o *Observer) read(ctx context.Context, iopub zmq4.Socket) {
	for ctx.Err() == nil {
		msg, err := iopub.Recv()
		if err != nil {
			return
		}
		o.take(msg.Frames)
	}
}

// take reads one message of IOPub.
func (o *Observer) take(frames [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m, size, cut := readCut(frames); cut {
		o.takeCut(m, size)
		return
	}
	m, err := o.sign.decode(frames)
	if err != nil {
		o.missed++
		if errors.Is(err, ErrSignature) {
			o.unsigned++
		}
		return
	}
	o.isReady.Do(func() { close(o.ready) })
	switch m.Header.MsgType {
	case "execute_input":
		o.started(m)
	case "display_data", "update_display_data":
		if !m.isOurs() {
			o.put(m)
		}
	case "stream":
		o.put(m)
	case "execute_result":
		o.put(m)
		o.cell(m.Parent.MsgID).outcome = "ok" // an error before it was of code that the cell ran itself
	case "error":
		o.put(m)
		o.failed(m)
	case "status":
		o.status(m)
	case "shutdown_reply":
		o.shutdown = true
		o.emit(Event{Kind: Restarting, At: time.Now()})
	}
}

// takeCut counts a message that was too large to be kept. Its signature cannot be
// checked, so that it only adds to the output of a cell that is known.
func (o *Observer) takeCut(m Message, size int64) {
	c := o.cells[m.Parent.MsgID]
	switch m.Header.MsgType {
	case "stream", "display_data", "update_display_data", "execute_result", "error":
		if c != nil && !m.isOurs() {
			c.output.Messages++
			c.output.Bytes += size
		}
	default:
		o.missed++
	}
}

func (o *Observer) cell(msgID string) *cell {
	c := o.cells[msgID]
	if c == nil {
		c = &cell{outcome: "ok"}
		o.cells[msgID] = c
		o.order = append(o.order, msgID)
		if len(o.order) > keptCells {
			delete(o.cells, o.order[0])
			o.order = o.order[1:]
		}
	}
	return c
}

func (o *Observer) started(m Message) {
	var content struct {
		Code           string `json:"code"`
		ExecutionCount int    `json:"execution_count"`
	}
	if json.Unmarshal(m.Content, &content) != nil {
		o.missed++
		return
	}
	c := o.cell(m.Parent.MsgID)
	c.count, c.started = content.ExecutionCount, true
	o.emit(Event{
		Kind: CellStarted, MsgID: m.Parent.MsgID, ExecutionCount: content.ExecutionCount, Code: content.Code,
		Subshell: m.Parent.SubshellID != "", At: time.Now(), Sent: m.Header.sent(),
	})
}

func (o *Observer) put(m Message) {
	c := o.cell(m.Parent.MsgID)
	c.output.Messages++
	c.output.Bytes += int64(len(m.Content))
	for _, b := range m.Buffers {
		c.output.Bytes += int64(len(b))
	}
}

func (o *Observer) failed(m Message) {
	var content struct {
		EName string `json:"ename"`
	}
	if json.Unmarshal(m.Content, &content) == nil && content.EName != "" {
		c := o.cell(m.Parent.MsgID)
		if c.outcome = "error: " + content.EName; content.EName == "KeyboardInterrupt" {
			c.outcome = "interrupted"
		}
	}
}

// status ends a cell: idle counts only when its parent is an execute_request,
// since comm messages on subshells have busy and idle of their own.
func (o *Observer) status(m Message) {
	var content struct {
		State string `json:"execution_state"`
	}
	if json.Unmarshal(m.Content, &content) != nil {
		o.missed++
		return
	}
	switch {
	case content.State == "restarting":
		o.shutdown = true
		o.emit(Event{Kind: Restarting, At: time.Now()})
	case content.State == "idle" && m.Parent.MsgType == "execute_request":
		c := o.cells[m.Parent.MsgID]
		if c == nil {
			c = &cell{outcome: "ok"}
		}
		o.emit(Event{
			Kind: CellEnded, MsgID: m.Parent.MsgID, ExecutionCount: c.count, Outcome: c.outcome, Unseen: !c.started,
			Subshell: m.Parent.SubshellID != "", At: time.Now(), Sent: m.Header.sent(),
		})
	}
}

// emit never blocks: IOPub is read on.
func (o *Observer) emit(e Event) {
	select {
	case o.events <- e:
	default:
	}
}
