package profilestore

import "testing"

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ text, endpoint, shown string }{
		{"http://pyroscope:4040", "http://pyroscope:4040/ingest", "http://pyroscope:4040"},
		{"https://example.com/tenant/", "https://example.com/tenant/ingest", "https://example.com/tenant"},
		{"http://pyroscope:4040/ingest", "http://pyroscope:4040/ingest", "http://pyroscope:4040"},
		{"pyroscope+https://h", "https://h/ingest", "https://h"},
		{"parca+http://parca:7070", "http://parca:7070/api/profiles/writeraw", "http://parca:7070"},
		{"https://me:secret@h?name=x", "https://me:secret@h/ingest", "https://me:xxxxx@h"},
	} {
		p, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := p.endpoint().String(); got != c.endpoint || p.String() != c.shown {
			t.Errorf("%s: %s, shown as %s; want %s and %s", c.text, got, p, c.endpoint, c.shown)
		}
	}
}

func TestWhatIsNoPlaceIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "pyroscope:4040", "/tmp/x", "s3://bucket/x", "http://", "parca://h", "http://h#x",
		"http://h?a-b=c", "http://h?1=c", "http://h?a=%zz",
	} {
		if p, err := Parse(text); err == nil {
			t.Errorf("%q became %s", text, p.endpoint())
		}
	}
}

func TestNamesOfApplications(t *testing.T) {
	for text, want := range map[string]string{
		"train.py": "train.py", "-m pkg.train": "pkg.train", "my run {1}, ü": "my_run__1", "{}": "python", "": "python",
	} {
		if got := applicationName(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
