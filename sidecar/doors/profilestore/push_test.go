package profilestore

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

var soon = patience{attempt: 5 * time.Second, pause: time.Millisecond}

// server answers with these statuses, one after the other and the last one from then on, and keeps what came.
func server(t *testing.T, statuses ...int) (*httptest.Server, *[]*http.Request) {
	t.Helper()
	var came []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		status := statuses[min(len(came), len(statuses)-1)]
		came = append(came, r)
		if status/100 == 3 {
			w.Header().Set("Location", "https://elsewhere.example.com/ingest")
		}
		w.WriteHeader(status)
		if status != http.StatusOK {
			io.WriteString(w, `{"code": 3, "message": "because of the label\nrank"}`)
		}
	}))
	t.Cleanup(s.Close)
	return s, &came
}

func place(t *testing.T, text string) Place {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// timesOf returns "function step" → wall time of a pprof profile.
func timesOf(t *testing.T, content []byte) map[string]int64 {
	t.Helper()
	p, err := profile.ParseData(content)
	if err != nil {
		t.Fatal(err)
	}
	if p.SampleType[0].Type != "wall" || p.SampleType[1].Type != "cpu" {
		t.Errorf("it is of %v", p.SampleType)
	}
	times := make(map[string]int64)
	for _, s := range p.Sample {
		times[strings.TrimSpace(s.Location[0].Line[0].Function.Name+" "+strings.Join(s.Label["step"], ""))] += s.Value[0]
	}
	return times
}

func TestPyroscopeGetsAProfileOfEachProcess(t *testing.T) {
	t.Setenv(HeadersVariable, "X-Scope-OrgID=vision, X-More = a b")
	s, came := server(t, http.StatusOK)
	to := place(t, strings.Replace(s.URL, "http://", "http://me:secret@", 1)+"?team=vision")
	sent, err := push(t.Context(), training(t), to, soon)
	if err != nil || sent != 2 || len(*came) != 2 {
		t.Fatalf("%d sent, %d came: %v", sent, len(*came), err)
	}
	first := (*came)[0]
	want := url.Values{
		"name": {"train.py{team=vision,hostname=node_7,pid=100,rank=3,role=rank}"},
		"from": {"1790000000"}, "until": {"1790000002"}, "format": {"pprof"}, "spyName": {"omni_perf"},
	}
	if got := first.URL.Query(); first.Method != "POST" || first.URL.Path != "/ingest" || got.Encode() != want.Encode() {
		t.Errorf("%s %s %v, want %v", first.Method, first.URL.Path, got, want)
	}
	if user, password, _ := first.BasicAuth(); user != "me" || password != "secret" {
		t.Errorf("credentials: %s:%s", user, password)
	}
	if h := first.Header; h.Get("X-Scope-OrgID") != "vision" || h.Get("X-More") != "a b" {
		t.Errorf("headers: %v", h)
	}
	body, _ := io.ReadAll(first.Body)
	if got := timesOf(t, body); got["fit 0"] != 1e9 || got["fit 1"] != 5e8 || got["fit"] != 5e8 || len(got) != 3 {
		t.Errorf("the rank's: %v", got)
	}
	want.Set("name", "train.py{team=vision,hostname=node_7,pid=200,rank=3,role=loader 0}")
	if got, want := (*came)[1].URL.Query().Get("name"), want.Get("name"); got != want {
		t.Errorf("the worker's: got %s, want %s", got, want)
	}
	body, _ = io.ReadAll((*came)[1].Body)
	if got := timesOf(t, body); got["load"] != 1e9 || len(got) != 1 {
		t.Errorf("the worker's: %v", got)
	}
}

func TestParcaGetsAProfileOfEachProcess(t *testing.T) {
	s, came := server(t, http.StatusOK)
	sent, err := push(t.Context(), training(t), place(t, "parca+"+s.URL+"?name=my-training"), soon)
	if err != nil || sent != 2 || len(*came) != 2 {
		t.Fatalf("%d sent, %d came: %v", sent, len(*came), err)
	}
	first := (*came)[0]
	got := strings.Join([]string{first.Method, first.URL.String(), first.Header.Get("Content-Type")}, " ")
	if want := "POST /api/profiles/writeraw application/json"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var body struct {
		Series []struct {
			Labels struct {
				Labels []struct{ Name, Value string }
			}
			Samples []struct{ RawProfile []byte }
		}
		Normalized bool
	}
	if err := json.NewDecoder(first.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, l := range body.Series[0].Labels.Labels {
		labels = append(labels, l.Name+"="+l.Value)
	}
	want := "__name__=omni_perf job=my-training hostname=node_7 pid=100 rank=3 role=rank"
	if got := strings.Join(labels, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if times := timesOf(t, body.Series[0].Samples[0].RawProfile); times["fit 0"] != 1e9 || !body.Normalized {
		t.Errorf("%v", times)
	}
}

func TestWhatAServerRefusesIsSaidWithWhatToDo(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusBadRequest:            "it answered 400 Bad Request (because of the label)",
		http.StatusUnauthorized:          "put the credentials into the URL",
		http.StatusNotFound:              "name the URL of a Pyroscope",
		http.StatusRequestEntityTooLarge: "a longer --prof-interval makes it smaller",
		http.StatusFound:                 "to https://elsewhere.example.com/ingest: name that place",
	} {
		s, came := server(t, status)
		sent, err := push(t.Context(), training(t), place(t, s.URL), soon)
		if err == nil || sent != 0 || len(*came) != 1 {
			t.Errorf("%d: %d sent by %d requests: %v", status, sent, len(*came), err)
		} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), s.URL) {
			t.Errorf("%d: got %q, want %q", status, err, want)
		}
	}
}

func TestAServersOwnErrorIsTriedOnceMore(t *testing.T) {
	s, came := server(t, http.StatusServiceUnavailable, http.StatusOK)
	if sent, err := push(t.Context(), training(t), place(t, s.URL), soon); err != nil || sent != 2 || len(*came) != 3 {
		t.Errorf("%d sent by %d requests: %v", sent, len(*came), err)
	}
	s, came = server(t, http.StatusOK, http.StatusInternalServerError)
	sent, err := push(t.Context(), training(t), place(t, s.URL), soon)
	if err == nil || sent != 1 || len(*came) != 3 {
		t.Errorf("%d sent by %d requests: %v", sent, len(*came), err)
	}
	if first, last := (*came)[0].URL.Query().Get("name"), (*came)[2].URL.Query().Get("name"); first == last {
		t.Errorf("what was taken was sent again: %s", last)
	}
}

func TestASlowServerIsNotWaitedFor(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	_, err := push(t.Context(), training(t), place(t, "parca+"+s.URL), patience{attempt: 200 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "it did not answer within 0.20 s") {
		t.Errorf("got %v", err)
	}
}

func TestNoServerIsSaidWithoutThePassword(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	_, err := push(t.Context(), training(t), place(t, strings.Replace(s.URL, "http://", "http://me:secret@", 1)), soon)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	s, came := server(t, http.StatusOK)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := push(ctx, training(t), place(t, s.URL), soon); err == nil || len(*came) > 0 {
		t.Errorf("%d requests came: %v", len(*came), err)
	}
}
