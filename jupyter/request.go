package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-zeromq/zmq4"
)

// Input is a cell as a kernel's own history has it.
type Input struct {
	ExecutionCount int
	Code           string // as typed
}

var errNoInput = errors.New("the kernel has no history of its cells")

// LastInput asks the kernel for the cell that it began last, which need not have ended:
// the control channel answers while a cell runs. The session's own history is in the
// kernel's memory, so that no file is read for it.
func (o *Observer) LastInput(ctx context.Context) (Input, error) {
	reply, err := o.ask(ctx, o.connection.ControlPort, "history_request", map[string]any{
		"hist_access_type": "range", "session": 0, "start": -1, "stop": nil, "raw": true, "output": false,
	})
	if err != nil {
		return Input{}, err
	}
	return parseHistory(reply.Content)
}

// parseHistory reads the last entry of a history_reply: [session, line, text].
func parseHistory(content []byte) (Input, error) {
	var reply struct {
		History [][]json.RawMessage `json:"history"`
	}
	if err := json.Unmarshal(content, &reply); err != nil {
		return Input{}, fmt.Errorf("history_reply: %w", err)
	}
	if len(reply.History) == 0 {
		return Input{}, errNoInput
	}
	var in Input
	entry := reply.History[len(reply.History)-1]
	if len(entry) != 3 || json.Unmarshal(entry[1], &in.ExecutionCount) != nil || json.Unmarshal(entry[2], &in.Code) != nil || in.ExecutionCount < 1 {
		return Input{}, errNoInput
	}
	return in, nil
}

// AwaitShell returns when the kernel has answered a request on its shell channel, which it
// takes between cells only: what was running or queued when it was asked has ended. Unlike
// IOPub, the channel loses nothing.
func (o *Observer) AwaitShell(ctx context.Context) error {
	_, err := o.ask(ctx, o.connection.ShellPort, "kernel_info_request", map[string]any{})
	return err
}

// ask sends a request on a channel and waits for its reply.
func (o *Observer) ask(ctx context.Context, port int, msgType string, content any) (Message, error) {
	if port <= 0 || port > 65535 {
		return Message{}, fmt.Errorf("%s: port %d is out of range", msgType, port)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type answer struct {
		Message
		error
	}
	answers := make(chan answer, 1)
	go func() {
		m, err := o.exchange(ctx, port, msgType, content)
		answers <- answer{m, err}
	}()
	select {
	case a := <-answers:
		if a.error != nil {
			return Message{}, fmt.Errorf("%s: %w", msgType, a.error)
		}
		return a.Message, nil
	case <-ctx.Done(): // zmq4 may take a while to notice
		return Message{}, fmt.Errorf("%s: %w", msgType, ctx.Err())
	}
}

func (o *Observer) exchange(ctx context.Context, port int, msgType string, content any) (Message, error) {
	socket := zmq4.NewDealer(ctx, zmq4.WithID(zmq4.SocketIdentity(rand.Text())), zmq4.WithDialerMaxRetries(-1), quiet)
	defer socket.Close()
	if err := dial(func() error { return socket.Dial(o.connection.endpoint(port)) }); err != nil {
		return Message{}, err
	}
	text, err := json.Marshal(content)
	if err != nil {
		return Message{}, err
	}
	request := Message{Header: newHeader(o.session, msgType), Content: text}
	frames, err := o.sign.encode(request)
	if err != nil {
		return Message{}, err
	}
	if err := socket.SendMulti(zmq4.NewMsgFrom(frames...)); err != nil {
		return Message{}, err
	}
	for {
		msg, err := socket.Recv()
		if err != nil {
			return Message{}, err
		}
		if m, err := o.sign.decode(msg.Frames); err == nil && m.Parent.MsgID == request.Header.MsgID {
			return m, nil
		}
	}
}
