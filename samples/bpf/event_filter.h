/* SPDX-License-Identifier: GPL-2.0 */
#ifndef EVENT_FILTER_H
#define EVENT_FILTER_H

/*
 * Tells libbpf about sections that are named after trace events:
 *
 *	SEC("events/GROUP/EVENT")	a program of type RAW_TRACEPOINT
 *	SEC("events/kprobes/EVENT")	one of type KPROBE; if there is no such event
 *					yet, it is defined as a probe on the entry of
 *					the function EVENT, for as long as the link
 *	SEC("events/uprobes/EVENT")	one of type KPROBE
 *
 * bpf_program__attach() then makes the program the filter of that event, and
 * bpf_link__destroy() takes it away. If the process dies, the kernel takes it
 * away; the definition of a kprobe stays, and the next process uses it.
 *
 * Call it before the object is opened. Returns 0 or a negative errno.
 */
int event_filter_register(void);

/*
 * What is attached from now on filters in an instance of the trace, of this name, so that
 * all others keep their events and their filters. The instance is made if it is not there,
 * and removed with its last link; if the process dies, the next one that uses it removes it.
 */
void event_filter_instance(const char *name);

#endif
