package profilestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/omni-perf/omni-perf/sidecar/understand/report"
	"github.com/omni-perf/omni-perf/sidecar/understand/words"
)

// HeadersVariable names an environment variable with headers of the requests, as OTEL_EXPORTER_OTLP_HEADERS has them:
// "X-Scope-OrgID=vision,Authorization=Bearer …". Command lines are visible to everybody on a machine.
const HeadersVariable = "OMNI_PERF_PUSH_HEADERS"

// patience is how long a server may take.
type patience struct {
	attempt time.Duration // for all requests of one attempt
	pause   time.Duration // between two attempts
}

const (
	attempts  = 2
	maxAnswer = 4 << 10 // bytes of an answer that are read
)

// Push sends the profile of each process of a report, each by one request. Where no connection could be made, or the
// server had an error of its own, it tries once more. It returns how many were sent; the error is a fragment that
// names the place.
func Push(ctx context.Context, r *report.View, to Place) (sent int, err error) {
	return push(ctx, r, to, patience{attempt: 10 * time.Second, pause: 500 * time.Millisecond})
}

func push(ctx context.Context, r *report.View, to Place, within patience) (sent int, err error) {
	list, err := seriesOf(r, to)
	if err != nil {
		return 0, fmt.Errorf("the profile cannot be sent to %s: %w", to, err)
	}
	if len(list) == 0 {
		return 0, fmt.Errorf("there is nothing to send to %s: no Python stack was read", to)
	}
	client := newClient()
	defer client.CloseIdleConnections()
	for tried := 1; ; tried++ {
		var n int
		n, err = attempt(ctx, client, to, list[sent:], within.attempt)
		sent += n
		if err == nil || tried == attempts || !temporary(err) || ctx.Err() != nil {
			break
		}
		time.Sleep(within.pause)
	}
	if err != nil {
		return sent, fmt.Errorf("the profile was not sent to %s: %w", to, err)
	}
	return sent, nil
}

// newClient makes a client that goes nowhere but to the place that was named.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the user's proxies
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// attempt sends what is left, one after the other, and returns how many the server has taken.
func attempt(ctx context.Context, client *http.Client, to Place, list []series, most time.Duration) (sent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for _, s := range list {
		err := send(ctx, client, to, s)
		if errors.Is(err, context.DeadlineExceeded) { // it may have been taken: a second time it would count twice
			return sent, fmt.Errorf("it did not answer within %s", words.Duration(most))
		}
		if err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}

func send(ctx context.Context, client *http.Client, to Place, s series) error {
	request, err := to.protocol.request(ctx, to.endpoint(), s)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "omni-perf")
	for pair := range strings.SplitSeq(os.Getenv(HeadersVariable), ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			request.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	answer, err := client.Do(request)
	if err != nil {
		var in *url.Error // its text has the whole URL
		if errors.As(err, &in) {
			err = in.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return &failure{0, err.Error()}
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 == 2 {
		return nil
	}
	return &failure{answer.StatusCode, refusal(answer, said)}
}

// failure is why a request was not accepted.
type failure struct {
	status int // 0: there was no answer
	text   string
}

func (f *failure) Error() string { return f.text }

// temporary reports whether it is worth another try.
func temporary(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.status == 0 || f.status == http.StatusTooManyRequests || f.status/100 == 5)
}

// What a user can do about some answers.
const (
	credentials = "put the credentials into the URL (https://USER:TOKEN@HOST) or into " + HeadersVariable
	otherServer = "name the URL of a Pyroscope, or that of a Parca by parca+http://"
	tooLarge    = "the profile is larger than the server takes: a longer --prof-interval makes it smaller"
)

var advice = map[int]string{
	http.StatusUnauthorized: credentials, http.StatusForbidden: credentials,
	http.StatusNotFound: otherServer, http.StatusMethodNotAllowed: otherServer,
	http.StatusRequestEntityTooLarge: tooLarge,
	http.StatusTooManyRequests:       "the server takes no more at the moment",
}

// refusal says what a server answered, and what to do about it.
func refusal(answer *http.Response, said []byte) string {
	text := answer.Status
	if place := answer.Header.Get("Location"); answer.StatusCode/100 == 3 && place != "" {
		text += ", to " + words.Clean(place, words.MaxName) + ": name that place"
	}
	var decoded struct{ Message string }
	message := string(said)
	if json.Unmarshal(said, &decoded) == nil {
		message = decoded.Message
	}
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	if message = words.Clean(message, words.MaxName); message != "" && !strings.HasPrefix(message, "<") {
		text += " (" + message + ")"
	}
	if a := advice[answer.StatusCode]; a != "" {
		text += "; " + a
	}
	return "it answered " + text
}
