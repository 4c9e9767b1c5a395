package origin

import "strings"

// Module is the name that the file of a library or of the standard library is
// imported by: "scipy.stats", "json.decoder"; empty for other files.
func (f *Files) Module(file string) string {
	o := f.Of(file)
	if o.Package == "" || o.Own() {
		return ""
	}
	slashed := strings.ReplaceAll(file, `\`, "/")
	root := 0 // where packages may begin
	for _, folder := range []string{"site-packages/", "dist-packages/"} {
		root = max(root, strings.LastIndex(slashed, folder))
	}
	if found := libraryPath.FindStringIndex(slashed); found != nil {
		root = max(root, found[1]-1)
	}
	at := strings.Index(slashed[root:], "/"+o.Package+"/")
	if at < 0 {
		return o.Package
	}
	name := strings.TrimSuffix(slashed[root+at+1:], ".py")
	return strings.ReplaceAll(strings.TrimSuffix(name, "/__init__"), "/", ".")
}
