package sqlite

import (
	"slices"
	"strings"
)

// column is a column of a table.
type column struct {
	name string
	isID bool // INTEGER PRIMARY KEY: another name of the row's id
}

// columnsOf reads the columns from the text of a CREATE TABLE; ok is false where rows are not stored by id or there is
// no list of columns.
func columnsOf(sql string) (columns []column, ok bool) {
	definitions, options, ok := definitionsOf(tokensOf(sql))
	if !ok || slices.ContainsFunc(options, func(option string) bool { return strings.EqualFold(option, "WITHOUT") }) {
		return nil, false
	}
	key := ""
	for _, d := range definitions {
		switch {
		case len(d) == 0:
			return nil, false
		case constraints[strings.ToUpper(d[0])]:
			if k, ok := keyOf(d); ok {
				key = k
			}
		default:
			name := unquoted(d[0])
			isInteger := len(d) > 1 && strings.EqualFold(d[1], "INTEGER")
			columns = append(columns, column{name, isInteger && isPrimary(d[2:])})
		}
	}
	for i, d := range columns {
		columns[i].isID = d.isID || key != "" && strings.EqualFold(d.name, key) && isIntegerColumn(definitions, d.name)
	}
	return columns, len(columns) > 0
}

// definitionsOf divides a CREATE TABLE into the definitions between its parentheses, of columns and constraints, and
// the options behind; ok is false where there are no parentheses that end.
func definitionsOf(tokens []string) (definitions [][]string, options []string, ok bool) {
	depth, begin := 0, -1
	for i, token := range tokens {
		switch token {
		case "(":
			if depth++; depth == 1 {
				begin = i + 1
			}
		case ")":
			if depth--; depth == 0 && begin >= 0 {
				return append(definitions, tokens[begin:i]), tokens[i:], true
			}
		case ",":
			if depth == 1 {
				definitions, begin = append(definitions, tokens[begin:i]), i+1
			}
		}
	}
	return nil, nil, false
}

// constraints begin a constraint of the table in place of a column.
var constraints = map[string]bool{"CONSTRAINT": true, "PRIMARY": true, "UNIQUE": true, "CHECK": true, "FOREIGN": true}

// isPrimary reports whether a column's constraints make it the key.
func isPrimary(tokens []string) bool {
	for i, token := range tokens {
		if strings.EqualFold(token, "PRIMARY") {
			return i+2 >= len(tokens) || !strings.EqualFold(tokens[i+2], "DESC") // §2.3: a quirk of old versions
		}
	}
	return false
}

// keyOf is the only column of PRIMARY KEY (column).
func keyOf(tokens []string) (name string, ok bool) {
	for i, token := range tokens {
		if strings.EqualFold(token, "PRIMARY") && i+4 < len(tokens) && tokens[i+2] == "(" && tokens[i+4] == ")" {
			return unquoted(tokens[i+3]), true
		}
	}
	return "", false
}

func isIntegerColumn(definitions [][]string, name string) bool {
	for _, d := range definitions {
		if len(d) > 1 && strings.EqualFold(unquoted(d[0]), name) {
			return strings.EqualFold(d[1], "INTEGER")
		}
	}
	return false
}

// closing are the quotes of names and texts, and what ends them.
var closing = map[byte]byte{'"': '"', '\'': '\'', '`': '`', '[': ']'}

// tokensOf divides SQL into words, quoted ones with their quotes, and marks; comments are left out.
func tokensOf(sql string) (tokens []string) {
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c <= ' ':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			i += through(sql[i:], "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i += 2 + through(sql[i+2:], "*/")
		case closing[c] != 0:
			n := 1 + through(sql[i+1:], string(closing[c]))
			for c != '[' && i+n < len(sql) && sql[i+n] == c { // a doubled quote is one of the text
				n += 1 + through(sql[i+n+1:], string(c))
			}
			tokens, i = append(tokens, sql[i:i+n]), i+n
		case strings.IndexByte("(),", c) >= 0:
			tokens, i = append(tokens, sql[i:i+1]), i+1
		default:
			n := strings.IndexAny(sql[i:], " \t\r\n(),\"'`[")
			if n <= 0 {
				n = len(sql) - i
			}
			tokens, i = append(tokens, sql[i:i+n]), i+n
		}
	}
	return tokens
}

// through is the length up to and with a text, all where it is not there.
func through(s, text string) int {
	if n := strings.Index(s, text); n >= 0 {
		return n + len(text)
	}
	return len(s)
}

func unquoted(token string) string {
	if len(token) >= 2 && closing[token[0]] == token[len(token)-1] {
		quote := token[len(token)-1:]
		return strings.ReplaceAll(token[1:len(token)-1], quote+quote, quote)
	}
	return token
}
