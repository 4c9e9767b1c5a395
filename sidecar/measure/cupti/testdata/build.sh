#!/bin/sh
# Builds the stand-in for libcupti and the program that drives it into a folder: build.sh FOLDER [FLAG …]
set -eu
folder=$1
shift
cd "$(dirname "$0")"
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -o "$folder/libcupti.so" "$@" fakecupti.c -ldl -lpthread
exec ${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -o "$folder/driver" "$@" driver.c -ldl -lpthread
