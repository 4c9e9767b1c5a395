package page

import "html/template"

// pageStyle is the page around the charts. Steps are chosen by radio buttons, so that
// it takes no script.
const pageStyle = `:root{color-scheme:light dark;--text:#1c1c1e;--dim:#6e6e73;--line:#e2e2e7;--ground:#fff;--mark:#c8501e;--soft:#f1f1f4}
@media screen and (prefers-color-scheme:dark){:root{--text:#f2f2f5;--dim:#9a9aa2;--line:#35353b;--ground:#111113;--mark:#f2a93b;--soft:#232327}}
body{font:14px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif;color:var(--text);background:var(--ground);max-width:1752px;margin:0 auto;padding:20px 24px 40px}
h1{font-size:14px;font-weight:600;margin:0;overflow-wrap:anywhere}h1 span{font-weight:400;color:var(--dim);margin-left:10px}
h2{font-size:12px;font-weight:600;letter-spacing:.04em;text-transform:uppercase;color:var(--dim);margin:26px 0 8px;border-top:1px solid var(--line);padding-top:14px}
.dim{color:var(--dim)}.answer{font-size:21px;line-height:1.35;font-weight:650;margin:10px 0 8px;max-width:60em}
ul{margin:0;padding:0;list-style:none;max-width:68em}li{margin:3px 0;padding-left:16px;position:relative;overflow-wrap:anywhere}li::before{content:"";position:absolute;left:2px;top:.6em;width:6px;height:6px;border-radius:3px;background:var(--mark)}
.warn{font-size:13px;color:var(--dim)}.warn li::before{background:var(--dim)}
.grid{columns:400px;column-gap:32px;margin:0 -10px}.grid figure{margin:0 0 14px;break-inside:avoid}
.grid svg{display:block;width:100%;max-width:460px;height:auto}
.steps>input{position:absolute;opacity:0;pointer-events:none}.steps label{display:inline-block;padding:3px 12px;margin:0 4px 6px 0;border:1px solid var(--line);border-radius:14px;cursor:pointer;font-size:13px}
.steps>input:checked+label{background:var(--text);color:var(--ground);border-color:var(--text)}.steps>input:focus-visible+label{outline:2px solid var(--mark);outline-offset:1px}
.steps>section{display:none}.steps>input:nth-of-type(1):checked~section:nth-of-type(1),.steps>input:nth-of-type(2):checked~section:nth-of-type(2),.steps>input:nth-of-type(3):checked~section:nth-of-type(3){display:block}
.steps>section>div:first-child{margin:0 -16px 8px}
@media (min-width:1560px){.steps>section:has(.grid){grid-template-columns:1120px minmax(0,1fr);column-gap:40px;align-items:start}
.steps>input:nth-of-type(1):checked~section:nth-of-type(1),.steps>input:nth-of-type(2):checked~section:nth-of-type(2),.steps>input:nth-of-type(3):checked~section:nth-of-type(3){display:grid}}
dl{display:flex;flex-wrap:wrap;gap:6px 28px;margin:6px 0 14px}dl div{min-width:70px}dt{font-size:12px;color:var(--dim)}dd{margin:0;font-size:16px;font-variant-numeric:tabular-nums}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
td,th{padding:2px 14px 2px 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}th{color:var(--dim);font-weight:400;border-bottom:1px solid var(--line);overflow-wrap:normal}
.n{text-align:right;white-space:nowrap}.s{white-space:nowrap}.scroll{overflow-x:auto}
details{margin:6px 0}summary{cursor:pointer}details details{margin:4px 0 4px 16px}
@media (max-width:900px){.steps .opv{overflow-x:auto}.steps .opv>svg,.steps section>div>svg{min-width:840px;max-width:none}}
@media print{body{padding:0;font-size:12px}details,.steps>label{display:none}.grid{columns:2}.grid figure,dl{break-inside:avoid}}`

// counting writes numbers of things.
var counting = template.FuncMap{"plural": plural}

var page = template.Must(template.New("page").Funcs(counting).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Name}} – omni_perf</title>
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width">
<style>{{.Style}}</style>{{with .Viewer}}<style>{{.}}</style>{{end}}</head><body>
<h1>{{.Name}}<span>{{.About}}</span></h1>
{{with .Answer}}<p class="answer">{{.}}</p>
{{end}}{{with .Findings}}<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{with .More}}<details><summary>{{plural (len .) "more finding"}}</summary><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></details>
{{end}}{{if .Warnings}}{{if gt (len .Warnings) 2}}<details class="warn"><summary>{{plural (len .Warnings) "warning"}} about the input</summary><ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul></details>
{{else}}<ul class="warn">{{range .Warnings}}<li>{{.}}</li>{{end}}</ul>
{{end}}{{end}}{{if .Steps}}<h2>Close up</h2>
<div class="steps">{{if gt (len .Steps) 1}}{{range $i, $s := .Steps}}<input type="radio" name="step" id="step{{$i}}"{{if eq $i 0}} checked{{end}}><label for="step{{$i}}">{{$s.Tab}}</label>{{end}}{{else}}<input type="radio" checked hidden>{{end}}
{{range .Steps}}<section>{{.Figure}}
<div><dl>{{range .Figures}}<div><dt>{{.Name}}</dt><dd>{{.Value}}</dd></div>{{end}}</dl>
{{with .Charts}}<div class="grid">{{range .}}<figure aria-label="{{.Title}}">{{.Inline}}</figure>{{end}}</div>{{end}}</div></section>
{{end}}<script>{{.Script}}</script></div>
{{end}}{{with .StepNote}}<p class="dim">{{.}}</p>
{{end}}{{if .Charts}}<h2>{{if .Steps}}All of it{{else}}Charts{{end}}</h2>
<div class="grid">{{range .Charts}}<figure aria-label="{{.Title}}">{{.Inline}}</figure>
{{end}}</div>
{{end}}{{with .Allocations}}<h2>Single allocations</h2>
<p class="dim">{{.About}}</p>
<style>{{.Style}}</style><div class="alloc"><canvas tabindex="0" role="img" aria-label="Single allocations over time, stacked; arrow keys go from one to the next"></canvas>
<noscript><p class="dim">With scripts they are here one by one; the charts above have them by category and by place.</p></noscript>
<p class="now"></p><div class="is"></div><div class="alive scroll"></div></div>
<script type="application/json" id="allocations">{{.Data}}</script><script>{{.Script}}</script>
{{end}}{{with .Missing}}<p class="dim">Not recorded: {{range $i, $m := .}}{{if $i}}; {{end}}{{$m}}{{end}}.</p>
{{end}}{{with .Notes}}<details class="dim"><summary>{{plural (len .) "note"}} about the input</summary><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></details>
{{end}}{{if .Tables}}<details><summary>{{plural (len .Tables) "table"}}</summary>
{{range .Tables}}<details><summary>{{.Title}}</summary>{{with .Note}}<p class="dim">{{.}}</p>{{end}}{{if .Rows}}<div class="scroll"><table>
<tr>{{range .Head}}<th{{if .Number}} class="n"{{end}}>{{.Text}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td{{if .Number}} class="n"{{else if .Short}} class="s"{{end}}>{{.Text}}</td>{{end}}</tr>
{{end}}</table></div>{{end}}</details>
{{end}}</details>
{{end}}</body></html>
`))

var fragment = template.Must(template.New("fragment").Funcs(counting).Parse(`<div>
<p style="margin:0 0 4px"><b>{{.Name}}</b> {{.About}}</p>
{{with .Answer}}<p style="margin:0 0 2px"><b>{{.}}</b></p>
{{end}}{{range .Findings}}<p style="margin:0 0 2px">{{.}}</p>
{{end}}{{with .More}}<details><summary>{{plural (len .) "more finding"}}</summary>{{range .}}<p style="margin:0 0 2px">{{.}}</p>{{end}}</details>
{{end}}{{if .Warnings}}<details><summary>{{plural (len .Warnings) "warning"}} about the input</summary><ul>{{range .Warnings}}<li>{{.}}</li>{{end}}</ul></details>
{{end}}{{range .Steps}}{{.Figure}}
{{end}}{{with .StepNote}}<p>{{.}}</p>
{{end}}<p style="margin:6px 0 0">{{range .Charts}}<img alt="{{.Title}}" src="{{.Image}}" style="max-width:100%;vertical-align:top">
{{end}}</p>
{{with .Missing}}<p>Not recorded: {{range $i, $m := .}}{{if $i}}; {{end}}{{$m}}{{end}}.</p>
{{end}}{{with .Notes}}<details><summary>{{plural (len .) "note"}} about the input</summary><ul>{{range .}}<li>{{.}}</li>{{end}}</ul></details>
{{end}}{{if .Tables}}<details><summary>{{plural (len .Tables) "table"}}</summary>
{{range .Tables}}<details><summary>{{.Title}}</summary>{{with .Note}}<p>{{.}}</p>{{end}}{{if .Rows}}<table>
<tr>{{range .Head}}<th style="text-align:{{if .Number}}right{{else}}left{{end}}">{{.Text}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td style="text-align:{{if .Number}}right{{else}}left{{end}}">{{.Text}}</td>{{end}}</tr>
{{end}}</table>{{end}}</details>
{{end}}</details>{{end}}
</div>
`))
