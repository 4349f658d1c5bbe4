/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BPF_EVENTS_SAME_H
#define BPF_EVENTS_SAME_H

/* Calls bpf_events_same() of another file */
void bpf_events_call_other(void);

#endif /* BPF_EVENTS_SAME_H */
