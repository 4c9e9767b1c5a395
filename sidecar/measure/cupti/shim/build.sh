#!/bin/sh
# Builds the library that records GPU activity within a process: build.sh OUT.so [FLAG …]
set -eu
out=$1
shift
cd "$(dirname "$0")"
# CC may be several words, as "python zigcc.py TARGET".
# shellcheck disable=SC2086
exec ${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -o "$out" "$@" shim.c -ldl -lpthread
