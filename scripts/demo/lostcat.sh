#!/bin/sh
# lostcat.sh: runs lostcat while a kretprobe has more calls under way than it has room for.
# It needs tracex4
# shellcheck shell=dash
set -u
# shellcheck source=lib
. /samples/lib

readers=5 event=kprobes/fifos

# A program to lose something: that of tracex4, which counts and turns down all hits, by its id
start tracex4 >/dev/null
tracex4=$sample
id=$("$dir/lostcat" -a -j -d 0.1 2>/dev/null | tr '{' '\n' | sed -n 's/.*"prog_id": \([0-9]*\), "name": "count_kprobe".*/\1/p')

start lostcat
echo "r1:$event fifo_open" >>$tracing/kprobe_events
echo "bpf-id:$id" >$tracing/events/$event/filter
echo 1 >$tracing/events/$event/enable
# lostcat sees what some process has open
exec 9<$tracing/events/$event/filter
echo "lostcat counts, while $readers tasks open a FIFO, in a function of which one call can be followed to its return:"
mkfifo "$tmp/fifo"
i=0
while [ $((i += 1)) -le $readers ]; do
	cat "$tmp/fifo" 9<&- &
	until grep -qs '^[0-9]* (cat) S' /proc/$!/stat; do sleep 0.1; done
done
sleep 1.5
# The writer for whom they wait makes one call more
: >"$tmp/fifo"
sleep 1
stop INT

exec 9<&-
echo 0 >$tracing/events/$event/enable
echo 0 >$tracing/events/$event/filter
echo "-:$event" >>$tracing/kprobe_events
sample=$tracex4
stop INT
