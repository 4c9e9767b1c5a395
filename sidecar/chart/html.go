package chart

import (
	"encoding/base64"
	"fmt"
	"html"
	"strings"

	"github.com/omni-perf/omni-perf/sidecar/report"
	"github.com/omni-perf/omni-perf/sidecar/words"
)

// swapScript replaces the image by the picture in it, so that tooltips work and
// the page's own theme counts. Its place is the image right before the script: no
// ids, nothing global, no other image of the page; run again, it finds none and does
// nothing. Of the picture it takes what draws: no script, no handler, no link, nothing
// of another language than SVG, whoever put the image there. Where scripts do not run
// the image stays.
const swapScript = `<script>(function(){` +
	`var s=document.currentScript,i=s&&s.previousElementSibling,h="data:image/svg+xml;base64,";` +
	`if(!i||i.nodeName!=="IMG"||i.src.slice(0,h.length)!==h)return;try{` +
	`var b=atob(i.src.slice(h.length)),a=new Uint8Array(b.length);` +
	`for(var k=0;k<b.length;k++)a[k]=b.charCodeAt(k);` +
	`var d=new DOMParser().parseFromString(new TextDecoder().decode(a),"image/svg+xml").documentElement;` +
	`if(d.nodeName!=="svg")return;` +
	`[d].concat([].slice.call(d.querySelectorAll("*"))).forEach(function(e){` +
	`if(e.namespaceURI!==d.namespaceURI||/^(script|foreignObject|set|animate.*)$/i.test(e.localName))return e.remove();` +
	`[].slice.call(e.attributes).forEach(function(t){` +
	`if(/^on/i.test(t.name)||/href$/i.test(t.name)&&t.value[0]!=="#")e.removeAttribute(t.name)})});` +
	`i.replaceWith(document.importNode(d,true))` +
	`}catch(e){}})()</script>`

// HTML is what a notebook shows for a cell: an image that also survives where
// the page is not trusted, and a script that puts the same picture inline.
func HTML(r *report.View, o Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	d := digestOf(r)
	return fragment(d, o.withDefaults(), fullBytes, fullDetail)
}

func fragment(d *digest, o Options, limit int, from detail) ([]byte, error) {
	o.Inline = true
	_, svg, err := drawWithin(limit, d, o, from)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.Grow(base64.StdEncoding.EncodedLen(len(svg)) + 2048)
	b.WriteString(`<div data-lm-suppress-shortcuts="true">`)
	fmt.Fprintf(&b, `<img width="%.0f" style="max-width:100%%;height:auto" alt="%s" src="data:image/svg+xml;base64,`,
		o.Width, html.EscapeString(words.Clean(d.summary, 600)))
	b.WriteString(base64.StdEncoding.EncodeToString(svg))
	b.WriteString(`">` + swapScript + `</div>`)
	return []byte(b.String()), nil
}

// Folded is the chart of a cell nobody asked about: closed, its headline
// visible, at most 60 kB.
func Folded(r *report.View, o Options) ([]byte, error) {
	if r == nil {
		return nil, errNoReport
	}
	d := digestOf(r)
	body, err := fragment(d, o.withDefaults(), foldedBytes, foldedDetail)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(`<details><summary style="cursor:pointer">`)
	for i, p := range append(d.title, firstOf(d.finding)...) {
		if i > 0 {
			b.WriteString(" &nbsp; ")
		}
		text := html.EscapeString(words.Clean(p.text, 160))
		if p.face == bold {
			text = "<b>" + text + "</b>"
		}
		b.WriteString(text)
	}
	if d.badge != "" {
		b.WriteString(" &nbsp; <b>(" + html.EscapeString(d.badge) + ")</b>")
	}
	b.WriteString("</summary>")
	b.Write(body)
	b.WriteString("</details>")
	return []byte(b.String()), nil
}

func firstOf(ps []phrase) []phrase {
	if len(ps) == 0 {
		return nil
	}
	return []phrase{{ps[0].text, ps[0].tone, sans}}
}
