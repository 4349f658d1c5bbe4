// What loader and verifier know about the program type.

// file: kernel/bpf/verifier.c
@func_ip@
expression E;
statement S1, S2;
@@
if (E) S1
- else if (<+... BPF_PROG_TYPE_KPROBE ...+>) S2

@sleepable@
expression E, F;
@@
- E == BPF_PROG_TYPE_KPROBE || F
+ F

@session@
symbol KF_bpf_session_cookie;
statement S;
@@
- if (<+... KF_bpf_session_cookie ...+>) S

// file: kernel/bpf/btf.c
@context@
expression E;
statement S;
@@
(
- if (E == BPF_PROG_TYPE_KPROBE) S
|
- E == BPF_PROG_TYPE_KPROBE ||
  E == BPF_PROG_TYPE_PERF_EVENT
)

// file: kernel/bpf/core.c
@override@
statement S;
expression E;
@@
- if (E->kprobe_override) S

// file: include/linux/bpf.h
@functions@
type T;
identifier f = { bpf_prog_run_array_uprobe };
@@
- T f(...) { ... }

// Reading kernel memory is no service of the tracing code alone.
@nofault@
identifier ret;
statement S;
@@
bpf_probe_read_kernel_common(...)
{
- int ret = -EFAULT;
+ int ret;
+
- if (IS_ENABLED(CONFIG_BPF_EVENTS))
  S
  ...
}

@members@
@@
struct bpf_trace_run_ctx {
...
- bool is_uprobe;
};

@assignment@
expression E, V;
@@
- E.is_uprobe = V;
