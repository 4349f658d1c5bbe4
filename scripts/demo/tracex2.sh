#!/bin/sh
# tracex2.sh: runs tracex2, which is in the same directory, while packets get lost and a file is written; then lets it show
# what it counted.  Needs no more than busybox; everything happens on the loopback interface and in a temporary directory.
# shellcheck shell=dash
set -u

writes='20x32 60x64 140x128 260x256 400x512 480x1024 420x2048 300x4096 170x8192 80x16384 30x32768 10x65536'
connects=12 packets=30

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$(dirname "$0")/tracex2" 2>"$tmp/messages" &
tracex2=$!
until grep -qs '^tracex2: counting' "$tmp/messages"; do
	if ! kill -0 $tracex2 2>/dev/null; then
		wait $tracex2
		rc=$?
		cat "$tmp/messages" >&2
		exit $rc
	fi
	sleep 0.1
done

echo "tracex2 counts, while this happens:"
echo "  nobody answers $connects TCP connections, $packets UDP packets and a few DNS queries"
i=0
while [ $((i += 1)) -le $connects ]; do
	nc 127.0.0.1 9 </dev/null 2>/dev/null
done
traceroute -m 1 -q $packets 127.0.0.1 >/dev/null 2>&1 # looks its name up, too

echo "  and dd writes to a file, count x size:"
echo "$writes" | fold -s -w 76 | sed 's/^/  /'
for write in $writes; do
	dd if=/dev/zero of="$tmp/file" count="${write%x*}" bs="${write#*x}" 2>/dev/null
done
echo

kill -INT $tracex2
wait $tracex2
