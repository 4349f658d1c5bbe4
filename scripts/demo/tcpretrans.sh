#!/bin/sh
# tcpretrans.sh: runs tcpretrans while nobody answers, to some connections from the beginning, to one later.  All that is in a
# network namespace of its own, where what goes to an address that lo has only a route to is dropped.
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

cat >"$tmp/network" <<'END'
set -e
ip link set lo up
ip addr add 10.0.0.1/32 dev lo
ip route add 192.0.2.0/24 dev lo src 10.0.0.1
ip route add local 10.0.0.2 dev lo src 10.0.0.1
cd /proc/sys/net/ipv4
# a SYN is sent again twice, a segment of data three times or so
echo 1 >tcp_syn_retries
echo 1 >tcp_syn_linear_timeouts
echo 3 >tcp_retries2

# neither end has anything to say, until there is a line for the client
rm -f "$1/line" "$1/idle"
mkfifo "$1/line" "$1/idle"
exec 3<>"$1/line" 4<>"$1/idle"
nc -l -p 7 <&4 >/dev/null &
server=$!
until grep -q ' 00000000:0007 00000000:0000 0A ' /proc/net/tcp; do sleep 0.1; done
nc 10.0.0.2 7 <&3 >/dev/null 2>&1 &
clients=$!
until grep -q ' 0200000A:0007 01 ' /proc/net/tcp; do sleep 0.1; done
ip route del local 10.0.0.2 dev lo
ip route add 10.0.0.2 dev lo src 10.0.0.1
echo hello >&3

for to in "192.0.2.1 80" "192.0.2.1 81" "192.0.2.2 80" "192.0.2.2 80" "192.0.2.2 80"; do
	nc $to <&4 2>/dev/null &
	clients="$clients $!"
done
for client in $clients; do wait $client || :; done
# RetransSegs, by its place in the line above
awk '$1 == "Tcp:" && !n { for (n = 1; $n != "RetransSegs"; n++) { }; next } $1 == "Tcp:" { print "  RetransSegs:", $n }' /proc/net/snmp
kill $server
END

start tcpretrans "$@"
echo "tcpretrans counts, while TCP"
echo "  connects to 192.0.2.1:80 and 192.0.2.1:81, and 3 times to 192.0.2.2:80, where nobody answers"
echo "  writes to 10.0.0.2:7, which answers no more"
unshare -n sh "$tmp/network" "$tmp" || exit
echo
stop INT
