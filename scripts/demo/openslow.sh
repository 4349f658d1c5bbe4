#!/bin/sh
# openslow.sh: runs openslow while FIFOs are opened that nobody writes to yet, and a file is opened many times.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

readers=5 opens=2000

start openslow -m 500000 "$@"
echo "openslow shows the opens that take half a second, while this happens:"
i=0 pids=''
while [ $((i += 1)) -le $readers ]; do
	mkfifo "$tmp/fifo.$i"
	cat "$tmp/fifo.$i" &
	pids="$pids $!"
	echo "  process $! waits for a writer of fifo.$i, inode $(stat -c %i "$tmp/fifo.$i")"
	until grep -qs '^[0-9]* ([a-z]*) S' /proc/$!/stat; do sleep 0.1; done
done
echo "  a file is opened $opens times"
: >"$tmp/file"
i=0
while [ $((i += 1)) -le $opens ]; do : <"$tmp/file"; done
sleep 1
echo "  process ${pids##* } is killed, the others get their writer"
echo
kill "${pids##* }"
i=0
while [ $((i += 1)) -lt $readers ]; do : >"$tmp/fifo.$i"; done
# shellcheck disable=SC2086 # several numbers
wait $pids 2>/dev/null
stop INT
