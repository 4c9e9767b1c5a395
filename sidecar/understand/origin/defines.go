package origin

import "strings"

// Defines reports whether a text has the definition of a function at its first line, counted from 1;
// of a decorated one that is the line of its first decorator.
func Defines(lines []string, first int, function string) bool {
	if first < 1 || first > len(lines) {
		return false
	}
	name := function[strings.LastIndexByte(function, '.')+1:]
	for i, decorated := first-1, false; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		switch {
		case strings.HasPrefix(line, "@"):
			decorated = true
			continue
		case name == "<lambda>":
			return strings.Contains(line, "lambda")
		case strings.HasPrefix(name, "<"): // <listcomp>, <genexpr>
			return strings.Contains(line, "for") || strings.ContainsAny(line, "([{")
		}
		defines := false
		for _, keyword := range []string{"def ", "class "} {
			_, rest, ok := strings.Cut(line, keyword)
			if rest = strings.TrimLeft(rest, " "); ok && strings.HasPrefix(rest, name) && !isName(rest[len(name):]) {
				return true
			}
			defines = defines || ok
		}
		if !decorated || defines { // a decorator's arguments may go on over lines
			return false
		}
	}
	return false
}

// isName reports whether a text begins like the rest of an identifier.
func isName(rest string) bool {
	return rest != "" && (rest[0] == '_' || rest[0] >= '0' && rest[0] <= '9' || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] >= 'a' && rest[0] <= 'z' || rest[0] >= 0x80)
}
