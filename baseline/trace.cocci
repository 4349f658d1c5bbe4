// Trace events that run the programs of their perf events.

// file: kernel/trace/trace_kprobe.c
@functions@
type T;
identifier f = { bpf_get_kprobe_info, trace_kprobe_on_func_entry,
	trace_kprobe_error_injectable };
@@
- T f(...) { ... }

@run@
statement S;
identifier f = { kprobe_perf_func, kretprobe_perf_func };
@@
f(...) {
<+...
- if (<+... bpf_prog_array_valid(...) ...+>) S
...+>
}

// file: kernel/trace/trace_probe.h
@functions@
type T;
identifier f = { trace_kprobe_on_func_entry, trace_kprobe_error_injectable };
@@
- T f(...) { ... }

// file: kernel/trace/trace_events.c
@functions@
type T;
identifier f = { trace_event_get_offsets };
@@
- T f(...) { ... }

// file: include/linux/syscalls.h
@functions@
type T;
identifier f = { is_syscall_trace_event };
@@
- T f(...) { ... }

// file: kernel/trace/trace_uprobe.c
@functions@
type T;
identifier f = { bpf_get_uprobe_info };
@@
- T f(...) { ... }

// file: kernel/trace/trace_syscalls.c
@functions@
type T;
identifier f = { perf_call_bpf_enter, perf_call_bpf_exit };
@@
- T f(...) { ... }

@run@
statement S;
identifier f = { perf_call_bpf_enter, perf_call_bpf_exit };
@@
- if (<+... f(...) ...+>) S

@valid@
symbol valid_prog_array;
@@
- valid_prog_array = bpf_prog_array_valid(...);

@test@
symbol valid_prog_array;
expression E;
@@
- !valid_prog_array && E
+ E

// The fake registers were taken for the program alone.
@registers@
symbol fake_regs;
expression size, rctx;
@@
  perf_trace_buf_alloc(size,
- &fake_regs
+ NULL
  , rctx)

@variables@
type T;
identifier v = { fake_regs, valid_prog_array };
@@
- T v;

// file: include/linux/trace_events.h
@members@
type T;
identifier m = { prog_array };
@@
struct trace_event_call {
...
- T m;
...
};

@functions@
type T;
identifier f = { bpf_prog_array_valid, trace_call_bpf,
	perf_event_attach_bpf_prog, perf_event_detach_bpf_prog,
	perf_event_query_prog_array, bpf_get_perf_event_info,
	bpf_kprobe_multi_link_attach, bpf_uprobe_multi_link_attach };
@@
- T f(...) { ... }

@declarations@
type T;
identifier f = { bpf_get_kprobe_info, bpf_get_uprobe_info,
	perf_event_set_bpf_prog, perf_event_free_bpf_prog,
	perf_trace_run_bpf_submit, trace_event_get_offsets };
@@
- T f(...);
