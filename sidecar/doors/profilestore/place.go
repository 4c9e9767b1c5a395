// Package profilestore sends the stacks of a report to a server that keeps profiles: Pyroscope or Parca.
//
// In flow a report and the place that the user has named, out flow HTTP requests to that place and to no other:
// redirections are not followed. It does not know where the report came from; what a profile contains is
// package export's.
package profilestore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Place is a server, and what it shall call what is sent. The zero value is none.
type Place struct {
	protocol *protocol
	url      url.URL // without query; its path is that of the server, not of an endpoint
	name     string  // of the application; empty: what the report says
	labels   []label // further ones
}

// label is a name that servers accept and its value.
type label struct{ name, value string }

// protocols are the servers that are known, by what their URLs begin with.
var protocols = map[string]*protocol{
	"http": &pyroscope, "https": &pyroscope, "pyroscope+http": &pyroscope, "pyroscope+https": &pyroscope,
	"parca+http": &parca, "parca+https": &parca,
}

var errPlace = errors.New("it takes the URL of a Pyroscope, http://HOST:4040, or of a Parca, parca+http://HOST:7070; " +
	"?name=NAME&LABEL=VALUE behind it are the application's name and labels")

// Parse reads the URL of a server: "http://pyroscope:4040?name=training&team=vision", "parca+https://HOST".
func Parse(text string) (Place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Fragment != "" {
		return Place{}, errPlace
	}
	p := Place{protocol: protocols[u.Scheme], url: *u}
	if p.protocol == nil {
		return Place{}, errPlace
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Place{}, errPlace
	}
	p.name = query.Get("name")
	query.Del("name")
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name == "" || labelName(name) != name {
			return Place{}, fmt.Errorf("%q is not the name of a label: it takes letters, digits and _, and no digit first", name)
		}
		p.labels = append(p.labels, label{name, query.Get(name)})
	}
	p.url.RawQuery, p.url.ForceQuery = "", false
	p.url.Scheme = p.url.Scheme[strings.IndexByte(p.url.Scheme, '+')+1:]
	p.url.Path = strings.TrimSuffix(strings.TrimRight(p.url.Path, "/"), p.protocol.path)
	p.url.RawPath = ""
	return p, nil
}

// String is the place without a password.
func (p Place) String() string { return p.url.Redacted() }

// endpoint is where profiles are sent to.
func (p Place) endpoint() *url.URL {
	u := p.url
	u.Path += p.protocol.path
	return &u
}

// labelName makes one of any text.
func labelName(text string) string {
	made := strings.Map(func(r rune) rune {
		if r == '_' || r < 0x80 && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, text)
	if made != "" && made[0] >= '0' && made[0] <= '9' {
		made = "_" + made
	}
	return made
}

// applicationName makes one of any text.
func applicationName(text string) string {
	made := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-./", r) || labelName("a"+string(r)) == "a"+string(r) {
			return r
		}
		return '_'
	}, strings.TrimSpace(strings.TrimPrefix(text, "-m ")))
	return cmp.Or(strings.Trim(made, "_"), "python")
}
