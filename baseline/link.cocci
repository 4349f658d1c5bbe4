// Links that attach to perf events, and the query of what an fd runs.

// file: kernel/bpf/syscall.c
@functions@
type T;
identifier f = { bpf_perf_link_release, bpf_perf_link_dealloc,
	bpf_perf_link_fill_common, bpf_perf_link_fill_kprobe,
	bpf_perf_link_fill_uprobe, bpf_perf_link_fill_probe,
	bpf_perf_link_fill_tracepoint, bpf_perf_link_fill_perf_event,
	bpf_perf_link_fill_link_info, bpf_perf_link_attach,
	bpf_task_fd_query_copy, bpf_task_fd_query };
@@
- T f(...) { ... }

@types@
identifier s = { bpf_perf_link };
@@
- struct s { ... };

@operations@
identifier v = { bpf_perf_link_lops };
@@
- const struct bpf_link_ops v = { ... };
