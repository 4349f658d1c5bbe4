#!/bin/sh
# tracex3.sh: runs tracex3 while the disk /dev/vda is read in small pieces, by one process and by eight at once.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

disk=/dev/vda
if [ ! -b $disk ]; then
	echo "tracex3.sh: no disk $disk to read from" >&2
	exit 1
fi
# reads PROCESSES SECONDS: of 4 KiB each, past the page cache.
reads() {
	local end=$(($(date +%s) + $2)) i=0 readers=''
	while [ $((i += 1)) -le "$1" ]; do
		while [ "$(date +%s)" -lt $end ]; do
			dd if=$disk of=/dev/null bs=4k count=200 iflag=direct 2>/dev/null
		done &
		readers="$readers $!"
	done
	# shellcheck disable=SC2086 # several numbers
	wait $readers
}

echo "tracex3 shows how long $disk takes, while it is read: by one process for 3 s,"
echo "by eight processes at once for 3 s, by nobody for 2 s, by one for 2 s"
start tracex3 -i 0.5 "$@"
reads 1 3
reads 8 3
sleep 2
reads 1 2
stop INT
