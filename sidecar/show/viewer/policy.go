package viewer

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Allow is the list of sources of a content security policy that allows these inline
// scripts or style sheets, and no others.
func Allow(texts ...string) string {
	sources := make([]string, len(texts))
	for i, text := range texts {
		sum := sha256.Sum256([]byte(text))
		sources[i] = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Join(sources, " ")
}
