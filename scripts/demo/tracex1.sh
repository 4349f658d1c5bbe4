#!/bin/sh
# tracex1.sh: runs tracex1 while packets are received from lo and from an interface of another name, which is the loopback of a
# network namespace of its own, renamed.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

start tracex1
echo "tracex1 shows packets from lo, while this happens:"
echo "  3 pings on lo: each is a request and a reply"
ping -c 3 -i 0.2 127.0.0.1 >/dev/null
echo "  5 pings on an interface that is called other"
unshare -n sh -c 'ip link set lo name other && ip link set other up && ping -c 5 -i 0.2 127.0.0.1' >/dev/null || exit
echo
stop INT
