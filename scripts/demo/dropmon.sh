#!/bin/sh
# dropmon.sh: runs dropmon while packets get lost on the loopback interface.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

connects=12 packets=30

start dropmon
echo "dropmon counts, while nobody answers $connects TCP connections and $packets UDP packets:"
i=0
while [ $((i += 1)) -le $connects ]; do
	nc 127.0.0.1 9 </dev/null 2>/dev/null
	sleep 0.1
done
traceroute -n -m 1 -q $packets 127.0.0.1 >/dev/null 2>&1
stop INT
