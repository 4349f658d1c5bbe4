// The attach path of perf events: set, free, query and run a program.
// (Spatch drops the prototype of a function together with its definition.)

// file: kernel/events/core.c
@functions@
type T;
identifier f = { bpf_overflow_handler, perf_event_set_bpf_handler,
	perf_event_free_bpf_handler, __perf_event_set_bpf_prog,
	perf_event_set_bpf_prog, perf_event_free_bpf_prog,
	perf_trace_run_bpf_submit, perf_get_event };
@@
- T f(...) { ... }

@free@
@@
- perf_event_free_bpf_prog(...);

@overflow@
statement S;
@@
- if (<+... bpf_overflow_handler(...) ...+>) S

@inherit@
statement S;
identifier parent;
@@
- if (parent->prog) S

// file: include/linux/perf_event.h
@members@
type T;
identifier m = { prog, bpf_cookie };
@@
struct perf_event {
...
- T m;
...
};

@functions@
type T;
identifier f = { perf_get_event };
@@
- T f(...) { ... }
