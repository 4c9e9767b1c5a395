package profilestore

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// protocol is how a kind of server takes profiles.
type protocol struct {
	path    string // behind the server's URL
	request func(ctx context.Context, to *url.URL, s series) (*http.Request, error)
}

// pyroscope is Pyroscope's HTTP API: https://grafana.com/docs/pyroscope/latest/reference-server-api/. Its other one
// (push.v1.PusherService) has the same content in protobuf.
var pyroscope = protocol{"/ingest", func(ctx context.Context, to *url.URL, s series) (*http.Request, error) {
	var labels []string
	for _, l := range s.labels {
		labels = append(labels, l.name+"="+l.value)
	}
	to.RawQuery = url.Values{
		"name":    {s.name + "{" + strings.Join(labels, ",") + "}"},
		"from":    {strconv.FormatInt(s.from.Unix(), 10)},
		"until":   {strconv.FormatInt(s.until.Unix(), 10)},
		"format":  {"pprof"},
		"spyName": {"omni_perf"},
	}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(s.profile))
	if err == nil {
		r.Header.Set("Content-Type", "application/octet-stream")
	}
	return r, err
}}

// parca is ProfileStoreService.WriteRaw of parca/profilestore/v1alpha1/profilestore.proto, in the JSON of the gRPC
// gateway that each Parca has at /api. Times are the profile's own.
var parca = protocol{"/api/profiles/writeraw", func(ctx context.Context, to *url.URL, s series) (*http.Request, error) {
	type (
		name struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		}
		labels struct {
			Labels []name `json:"labels"`
		}
		sample struct {
			RawProfile []byte `json:"rawProfile"` // encoded as base64
		}
		rawSeries struct {
			Labels  labels   `json:"labels"`
			Samples []sample `json:"samples"`
		}
		writeRaw struct {
			Series     []rawSeries `json:"series"`
			Normalized bool        `json:"normalized"` // there are no addresses
		}
	)
	one := rawSeries{Samples: []sample{{s.profile}}}
	one.Labels.Labels = []name{{"__name__", "omni_perf"}, {"job", s.name}}
	for _, l := range s.labels {
		if l.name != "job" {
			one.Labels.Labels = append(one.Labels.Labels, name{l.name, l.value})
		}
	}
	body, err := json.Marshal(writeRaw{Series: []rawSeries{one}, Normalized: true})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}}
