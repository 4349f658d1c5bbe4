#!/bin/sh
# fsynclat.sh: runs fsynclat while processes call fsync(), many at once, and while a disk has something to write.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

processes=8 calls=250
# repeat NUMBER WORD: the word so often.
repeat() { yes "$2" | head -n "$1"; }

start fsynclat "$@"
echo "fsynclat measures, while processes call fsync(), all at once:"
: >"$tmp/shared"
i=0 pids=''
while [ $((i += 1)) -le $processes ]; do
	: >"$tmp/own.$i"
	# shellcheck disable=SC2046 # many words
	sync $(repeat $calls "$tmp/own.$i") $(repeat $calls "$tmp/shared") &
	echo "  process $!: own.$i $calls times, shared $calls times"
	pids="$pids $!"
done
sync /proc/version /proc/version /proc/version 2>/dev/null &
echo "  process $!: version 3 times, which cannot be"
pids="$pids $!"
if [ -b /dev/vda ]; then
	dd if=/dev/zero of=/dev/vda bs=64k count=16 conv=fsync 2>/dev/null &
	echo "  process $!: vda 1 times, with 1 MiB to be written"
	pids="$pids $!"
fi
# shellcheck disable=SC2086 # several numbers
wait $pids
echo
stop INT
