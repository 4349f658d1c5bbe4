#!/bin/sh
# tracex4.sh: runs tracex4 while a file is written in pieces of known sizes.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

writes='20x32 60x64 140x128 260x256 400x512 480x1024 420x2048 300x4096 170x8192 80x16384 30x32768 10x65536'

start tracex4
echo "tracex4 counts, while dd writes to a file, count x size:"
echo "$writes" | fold -s -w 76 | sed 's/^/  /'
for write in $writes; do
	dd if=/dev/zero of="$tmp/file" count="${write%x*}" bs="${write#*x}" 2>/dev/null
done
echo
stop INT
