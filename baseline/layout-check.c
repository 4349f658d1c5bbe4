// SPDX-License-Identifier: GPL-2.0
/*
 * The numbers and layouts of the shared uapi, which the baseline must have in
 * common with the kernel it is derived from. check.sh compiles this against the
 * tree's headers; it holds for the untouched source just the same.
 */
#include <stddef.h>
#include "bpf.h"
#include "perf_event.h"

#define IS(expr, value) _Static_assert((expr) == (value), #expr)

/* What follows a reserved slot keeps its number. */
IS(BPF_PROG_TYPE_SCHED_CLS, 3);
IS(BPF_PROG_TYPE_NETFILTER, 32);
IS(BPF_LSM_CGROUP, 43);
IS(BPF_CGROUP_UNIX_CONNECT, 49);
IS(__MAX_BPF_ATTACH_TYPE, 57);
IS(BPF_LINK_TYPE_STRUCT_OPS, 9);
IS(BPF_LINK_TYPE_NETKIT, 13);
IS(__MAX_BPF_LINK_TYPE, 15);
IS(BPF_TASK_FD_QUERY, 20);
IS(__MAX_BPF_CMD, 37);
IS(BPF_FUNC_override_return, 58);
IS(__BPF_FUNC_MAX_ID, 212);
IS(PERF_EVENT_IOC_PAUSE_OUTPUT, _IOW('$', 9, __u32));
IS(PERF_EVENT_IOC_MODIFY_ATTRIBUTES, _IOW('$', 11, struct perf_event_attr *));

/* Union members that stay, because they say how large the whole is. */
IS(sizeof(union bpf_attr), 152);
IS(offsetof(union bpf_attr, kern_version), 40);
IS(offsetof(union bpf_attr, link_create.perf_event.bpf_cookie), 16);
IS(offsetof(union bpf_attr, link_create.kprobe_multi.cookies), 40);
IS(offsetof(union bpf_attr, link_create.uprobe_multi.pid), 56);
IS(offsetof(union bpf_attr, task_fd_query.probe_addr), 40);
IS(sizeof(struct bpf_link_info), 64);
IS(offsetof(struct bpf_link_info, kprobe_multi.cookies), 40);
IS(offsetof(struct bpf_link_info, uprobe_multi.pid), 60);
IS(offsetof(struct bpf_link_info, perf_event.kprobe.cookie), 56);
IS(sizeof(struct perf_event_attr), 136);
