// The command line of `omni-perf run`, read where no Go program can. The same rules are in
// cmd/omni-perf/pythonargs.go and sidecar/doors/program/command.go, which a test compares
// (TestUnprofiledCommandLines).

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "waiter.h"

static const char *const commands[] = {
	"run", "attach", "top", "show", "export", "merge", "compare", "analyze", "mcp", "make-traces", "kernel", "doctor", "serve", "version",
	"help", "completion",
};

static const struct option {
	const char *name;
	char letter;
	int value;
} options[] = {
	{"output", 'o', 1}, {"prof-interval", 'p', 1}, {"sys-interval", 's', 1}, {"children", 0, 1},
	{"format", 0, 1}, {"interpreter", 0, 1}, {"open", 0, 0}, {"help", 'h', 0},
	{"no-step-hook", 0, 0}, {"exact", 0, 0}, {"nsys", 0, 0}, {"torch", 0, 0}, {"profiling", 0, 0}, {"prof-dir", 0, 1}, {"ptensorboard", 0, 0}, {"fail-if", 0, 1}, {"push", 0, 1}, {"allow-errors", 0, 0}, {"kernel-name", 0, 1}, {"timeout", 0, 1}, {"executed", 0, 1},
};

#define COUNT(list) (sizeof list / sizeof *list)

static int starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static int ends(const char *text, const char *with) {
	size_t n = strlen(text), m = strlen(with);
	return n >= m && strcmp(text + n - m, with) == 0;
}

static int regular(const char *path, struct stat *st) { return stat(path, st) == 0 && S_ISREG(st->st_mode); }

int omni_perf_means_run(int argc, char **argv) {
	struct stat st;
	if (argc < 2)
		return 0;
	const char *arg = argv[1];
	if (strcmp(arg, "run") == 0)
		return 1;
	for (size_t i = 0; i < COUNT(commands); i++)
		if (strcmp(arg, commands[i]) == 0)
			return 0;
	if (starts(arg, "__complete") || strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0 || strcmp(arg, "--version") == 0)
		return 0;
	if (starts(arg, "-test.")) // of a test of ours, which is this program too
		return 0;
	return starts(arg, "-") || ends(arg, ".py") || regular(arg, &st);
}

static int same_name(const char *name, const char *arg) { // up to '='; '_' is '-'
	for (; *name; name++, arg++)
		if (*name != (*arg == '_' ? '-' : *arg))
			return 0;
	return *arg == 0 || *arg == '=';
}

// our_option is the number of arguments of the option of ours that argv begins with; 0: none.
static int our_option(int argc, char **argv, const char **interpreter) {
	const char *arg = argv[0];
	for (size_t i = 0; i < COUNT(options); i++) {
		const char *value = NULL;
		int n = 1;
		if (starts(arg, "--")) {
			if (!same_name(options[i].name, arg + 2))
				continue;
			value = strchr(arg, '=');
			value = value ? value + 1 : NULL;
		} else {
			if (!options[i].letter || arg[1] != options[i].letter)
				continue;
			value = arg[2] ? arg + 2 : NULL;
		}
		if (!value && options[i].value && argc > 1) {
			value = argv[1];
			n = 2;
		}
		if (strcmp(options[i].name, "interpreter") == 0)
			*interpreter = value;
		return n;
	}
	return 0;
}

enum kind { NONE, FLAG, PROGRAM };

static enum kind python_option(int argc, char **argv, int *n) {
	static const char checks[] = "--check-hash-based-pycs";
	const char *arg = argv[0];
	*n = 1;
	if (starts(arg, "--")) {
		if (strcmp(arg, checks) == 0) {
			*n = argc > 1 ? 2 : 1;
			return FLAG;
		}
		return starts(arg, checks) && arg[sizeof checks - 1] == '=' ? FLAG : NONE;
	}
	for (const char *letter = arg + 1; *letter; letter++) {
		if (strchr("bBdEiIOPqSuvx", *letter))
			continue;
		if (strchr("WX", *letter)) {
			if (!letter[1])
				*n = argc > 1 ? 2 : 1;
			return FLAG;
		}
		return strchr("mc", *letter) ? PROGRAM : NONE;
	}
	return FLAG;
}

static int names_program(const char *arg) { return arg[0] != '-' || !arg[1] || strcmp(arg, "--") == 0; }

// executed reports whether a file is executed as it is: machine code, or a script for another
// interpreter than Python.
static int executed(const char *path) {
	char head[257] = "";
	struct stat st;
	if (!regular(path, &st) || !(st.st_mode & 0111))
		return 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	size_t n = fread(head, 1, 256, file);
	fclose(file);
	head[n] = 0;
	if (starts(head, "\x7f" "ELF"))
		return 1;
	head[strcspn(head, "\n")] = 0;
	return starts(head, "#!") && !strstr(head, "py");
}

static int on_path(const char *name) {
	const char *path = getenv("PATH");
	for (path = path ? path : ""; *path; path += strspn(path, ":")) {
		char file[4096];
		struct stat st;
		int n = (int)strcspn(path, ":");
		snprintf(file, sizeof file, "%.*s/%s", n, path, name);
		if (n > 0 && regular(file, &st) && access(file, X_OK) == 0)
			return 1;
		path += n;
	}
	return 0;
}

char **omni_perf_program(int argc, char **argv) {
	int at = argc > 1 && strcmp(argv[1], "run") == 0 ? 2 : 1, n = 0, alone;
	const char *interpreter = NULL;
	char **out = calloc(argc + 2, sizeof *out), **rest;
	if (!out)
		return NULL;
	rest = out + 1; // out[0] is the interpreter
	while (at < argc && !names_program(argv[at])) {
		int length = our_option(argc - at, argv + at, &interpreter);
		if (length > 0) {
			if (same_name("help", argv[at] + strspn(argv[at], "-")) || argv[at][1] == 'h')
				return NULL;
			at += length;
			continue;
		}
		enum kind kind = python_option(argc - at, argv + at, &length);
		if (kind == NONE)
			return NULL;
		if (kind == PROGRAM)
			break;
		while (length-- > 0)
			rest[n++] = argv[at++];
	}
	alone = n == 0 && !interpreter;
	if (argc - at > 1 && strcmp(argv[at], "--") == 0 && argv[at + 1][0] != '-')
		at++;
	int first = n;
	while (at < argc)
		rest[n++] = argv[at++];
	if (n > first && rest[first][0] != '-') {
		char *name = rest[first];
		struct stat st;
		if (stat(name, &st) == 0 ? executed(name) : !strchr(name, '/') && on_path(name)) {
			if (!alone)
				return NULL;
			if (!strchr(name, '/') && stat(name, &st) == 0 && asprintf(&rest[first], "./%s", name) < 0)
				return NULL;
			return rest;
		}
	}
	const char *env = getenv("VIRTUAL_ENV");
	struct stat st;
	out[0] = interpreter ? (char *)interpreter : "python3";
	if (!interpreter && env && *env) {
		char *python;
		if (asprintf(&python, "%s/bin/python", env) >= 0 && stat(python, &st) == 0)
			out[0] = python;
	}
	return out;
}
