// SPDX-License-Identifier: GPL-2.0
/*
 * BPF_PROG_TYPE_TRACEPOINT: programs on perf events of static tracepoints and
 * of system calls, which are given the record
 */
#include "common.h"
#include "error_log.h"
#include "link.h"
#include "ring.h"
#include "uprobe.h"
#include "filter.h"

#define RENAME "task/task_rename"
#define ENTER "syscalls/sys_enter_sched_get_priority_max"
#define EXIT "syscalls/sys_exit_sched_get_priority_max"
#define COOKIE 0x1122334455667788ULL

#define WANTS_TRACEPOINT "This event takes programs of type BPF_PROG_TYPE_TRACEPOINT"
#define PAST_RECORD "The program reads past the end of the event's record, see its format"

struct field {
	unsigned int offset;
	unsigned int size;
};

/* Where the format file says that a field is; with a name of "" the last one */
static int find_field(const char *event, const char *name, struct field *field)
{
	char line[256], *type, *at;
	unsigned int offset, size;
	FILE *file = fopen(event_file(TRACEFS, event, "format"), "re");

	memset(field, 0, sizeof(*field));
	while (file && fgets(line, sizeof(line), file)) {
		type = strstr(line, "field:");
		at = strstr(line, "offset:");
		if (!type || !at || sscanf(at, "offset:%u; size:%u", &offset, &size) != 2)
			continue;
		*strpbrk(type, ";[") = '\0';
		if (*name && strcmp(strrchr(type, ' ') + 1, name))
			continue;
		field->offset = offset;
		field->size = size;
	}
	if (file)
		fclose(file);
	return field->size ? 0 : -ENOENT;
}

static int bpf_size(unsigned int bytes)
{
	return bytes == 1 ? BPF_B : bytes == 2 ? BPF_H : bytes == 4 ? BPF_W : BPF_DW;
}

static int tp_load(const struct bpf_insn *insns, size_t cnt)
{
	return prog_load_of(BPF_PROG_TYPE_TRACEPOINT, insns, cnt);
}

/*
 * In the hits of this process slot 0 becomes what is in the record, slot 1
 * counts, and what is in slot 2 is returned
 */
static int field_prog(struct area *area, unsigned int offset, unsigned int size)
{
	struct bpf_insn insns[] = {
		BPF_LDX_MEM(bpf_size(size), BPF_REG_6, BPF_REG_1, offset),
		BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
		BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
		BPF_MOV64_REG(BPF_REG_1, BPF_REG_0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_JMP_IMM(BPF_JNE, BPF_REG_1, getpid(), 6),
		AREA(BPF_REG_1, area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_6, 0),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 8),
		BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_1, 16),
		BPF_EXIT_INSN(),
	};

	return tp_load(insns, ARRAY_SIZE(insns));
}

static void hit_all(void)
{
	hit_rename();
	hit_arg(SCHED_RR);
}

FIXTURE(tracepoint) {
	struct field field;
	struct area area;
	struct ring ring;
	const char *name;	/* of the event, without its system */
	int perf;
	int prog;
	int link;
};

FIXTURE_VARIANT(tracepoint) {
	const char *event;
	const char *field;
	unsigned int size;
	bool link;
};

FIXTURE_VARIANT_ADD(tracepoint, set_bpf) {
	.event = RENAME,
	.field = "pid",
	.size = 4,
};

FIXTURE_VARIANT_ADD(tracepoint, link) {
	.event = RENAME,
	.field = "pid",
	.size = 4,
	.link = true,
};

FIXTURE_VARIANT_ADD(tracepoint, sys_enter_set_bpf) {
	.event = ENTER,
	.field = "policy",
	.size = 8,
};

FIXTURE_VARIANT_ADD(tracepoint, sys_enter_link) {
	.event = ENTER,
	.field = "policy",
	.size = 8,
	.link = true,
};

FIXTURE_VARIANT_ADD(tracepoint, sys_exit_set_bpf) {
	.event = EXIT,
	.field = "ret",
	.size = 8,
};

FIXTURE_VARIANT_ADD(tracepoint, sys_exit_link) {
	.event = EXIT,
	.field = "ret",
	.size = 8,
	.link = true,
};

/* By link or by SET_BPF, as the variant has it */
static int tp_attach(bool link, int perf, int prog, int *link_fd)
{
	if (!link)
		return perf_set_bpf(perf, prog);
	*link_fd = link_create(prog, perf, BPF_PERF_EVENT, 0, COOKIE);
	return *link_fd < 0 ? *link_fd : 0;
}

FIXTURE_SETUP(tracepoint)
{
	SKIP_WITHOUT(return, filter_prepare());
	self->name = strchr(variant->event, '/') + 1;
	ASSERT_EQ(0, find_field(variant->event, variant->field, &self->field));
	ASSERT_EQ(variant->size, self->field.size);
	ASSERT_EQ(0, area_create(&self->area));
	self->perf = perf_open_event(variant->event);
	ASSERT_LE(0, self->perf);
	ASSERT_EQ(0, ring_map(&self->ring, self->perf));
	self->prog = field_prog(&self->area, self->field.offset, self->field.size);
	ASSERT_LE(0, self->prog);
	ASSERT_EQ(0, tp_attach(variant->link, self->perf, self->prog, &self->link));
}

FIXTURE_TEARDOWN_PARENT(tracepoint)
{
	EXPECT_STREQ("nothing", leftovers());
}

/* What the field of the variant is after hit_all() */
static __u64 expected(const char *field)
{
	if (!strcmp(field, "pid"))
		return getpid();
	return !strcmp(field, "policy") ? SCHED_RR : 99;
}

TEST_F(tracepoint, reads_the_record)
{
	hit_all();
	EXPECT_EQ(1, area_get(&self->area, 1));
	EXPECT_EQ(expected(variant->field), area_get(&self->area, 0));
}

TEST_F(tracepoint, verdict_decides_about_records)
{
	char raw[128];
	__u32 len;
	int i;

	for (i = 0; i < 4; i++) {
		area_set(&self->area, 2, i & 1);
		hit_all();
		hit_all();
		EXPECT_EQ(i & 1 ? 2 : 0, ring_samples(&self->ring));
	}
	EXPECT_EQ(8, area_get(&self->area, 1));

	/* The registers that programs do not see are not in the record, either */
	hit_all();
	ASSERT_EQ(PERF_RECORD_SAMPLE, ring_read(&self->ring, raw, sizeof(raw), &len));
	EXPECT_EQ(getpid(), *(int *)(raw + 4));
	EXPECT_EQ(0, memcmp(raw + self->field.offset, &self->area.slot[0],
			    self->field.size));
}

TEST_F(tracepoint, close)
{
	if (variant->link)
		close(self->link);
	ring_unmap(&self->ring);
	close(self->perf);
	hit_all();
	EXPECT_EQ(0, area_get(&self->area, 1));
}

TEST_F(tracepoint, several_programs)
{
	int link, perf = perf_open_event(variant->event);
	int prog;

	EXPECT_EQ(-EEXIST, tp_attach(variant->link, self->perf, self->prog, &link));
	ASSERT_LE(0, perf);
	prog = field_prog(&self->area, self->field.offset, self->field.size);
	ASSERT_EQ(0, tp_attach(variant->link, perf, prog, &link));
	EXPECT_EQ(2, query_count(perf));
	hit_all();
	EXPECT_EQ(2, area_get(&self->area, 1));
}

/* What error_log says of a program that an event does not take */
static const char *tp_entry(const char *error, const char *word, bool link,
			    const char *event, int prog, const char *type)
{
	char name[64];

	snprintf(name, sizeof(name), "%s", event);
	*strchr(name, '/') = ':';
	return entry(error, word, "%s %s fd %d %s", link ? "LINK_CREATE" : "SET_BPF", name,
		     prog, type);
}

TEST_F(tracepoint, past_the_record)
{
	int link, perf = perf_open_event(variant->event), prog;
	struct field last;

	ASSERT_LE(0, perf);
	ASSERT_EQ(0, find_field(variant->event, "", &last));
	prog = field_prog(&self->area, last.offset + last.size, 1);
	ASSERT_LE(0, prog);
	write_file(ERROR_LOG, O_TRUNC, "");
	EXPECT_EQ(-EACCES, tp_attach(variant->link, perf, prog, &link));
	EXPECT_STREQ(tp_entry(PAST_RECORD, "fd ", variant->link, variant->event, prog,
			      "BPF_PROG_TYPE_TRACEPOINT"), entries());
	EXPECT_EQ(1, query_count(perf));
	prog = field_prog(&self->area, last.offset + last.size - 1, 1);
	ASSERT_LE(0, prog);
	EXPECT_EQ(0, tp_attach(variant->link, perf, prog, &link));
}

TEST_F(tracepoint, program_of_another_kind)
{
	int link, perf = perf_open_event(variant->event), prog;

	ASSERT_LE(0, perf);
	write_file(ERROR_LOG, O_TRUNC, "");
	prog = count_prog(&self->area, 8, 1);
	EXPECT_EQ(-EINVAL, tp_attach(variant->link, perf, prog, &link));
	EXPECT_STREQ(tp_entry(WANTS_TRACEPOINT, "BPF_PROG", variant->link, variant->event, prog,
			      "BPF_PROG_TYPE_KPROBE"), entries());
	EXPECT_EQ(-EINVAL, tp_attach(variant->link, perf,
				     prog_load_type(BPF_PROG_TYPE_SOCKET_FILTER, 0, 0),
				     &link));
	EXPECT_EQ(-EINVAL, tp_attach(variant->link, perf,
				     prog_load_type(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0),
				     &link));
	EXPECT_EQ(1, query_count(perf));
}

TEST_F(tracepoint, task_fd_query)
{
	union bpf_attr attr = {};
	char name[128];

	attr.task_fd_query.pid = getpid();
	attr.task_fd_query.fd = self->perf;
	attr.task_fd_query.buf = (unsigned long)name;
	attr.task_fd_query.buf_len = sizeof(name);
	ASSERT_EQ(0, sys_bpf(BPF_TASK_FD_QUERY, &attr));
	EXPECT_EQ(prog_id(self->prog), attr.task_fd_query.prog_id);
	EXPECT_EQ(BPF_FD_TYPE_TRACEPOINT, attr.task_fd_query.fd_type);
	EXPECT_STREQ(self->name, name);
	EXPECT_EQ(0, attr.task_fd_query.probe_offset);
	EXPECT_EQ(0, attr.task_fd_query.probe_addr);
}

/* What programs get and may do */

FIXTURE(program) {
	struct area area;
	int perf;
};

FIXTURE_SETUP(program)
{
	SKIP_WITHOUT(return, filter_prepare());
	ASSERT_EQ(0, area_create(&self->area));
	self->perf = perf_open_event(RENAME);
	ASSERT_LE(0, self->perf);
}

FIXTURE_TEARDOWN_PARENT(program)
{
	EXPECT_STREQ("nothing", leftovers());
}

TEST_F(program, fields_of_all_sizes)
{
	const struct {
		const char *field;
		unsigned int at;
		unsigned int size;
		__u64 value;
	} reads[] = {
		{ "newcomm", 0, 1, 'b' },
		{ "newcomm", 15, 1, 0 },
		{ "newcomm", 0, 4, 0x5f667062 },	/* "bpf_" */
		{ "newcomm", 4, 4, 0x6e657665 },	/* "even" */
		{ "oom_score_adj", 0, 2, 0 },
	};
	struct field field;
	int i, perf;

	for (i = 0; i < ARRAY_SIZE(reads); i++) {
		ASSERT_EQ(0, find_field(RENAME, reads[i].field, &field));
		perf = perf_open_event(RENAME);
		area_set(&self->area, 0, ~0ULL);
		ASSERT_EQ(0, perf_set_bpf(perf, field_prog(&self->area,
							   field.offset + reads[i].at,
							   reads[i].size)));
		hit_rename();
		EXPECT_EQ(reads[i].value, area_get(&self->area, 0));
		close(perf);
	}
}

/* Between fields there is nothing of the kernel's stack (CONFIG_INIT_STACK_ALL_PATTERN) */
TEST_F(program, hole)
{
	static const char * const events[] = {
		"syscalls/sys_enter_sched_get_priority_max",
		"syscalls/sys_exit_sched_get_priority_max",
	};
	int i, perf;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		perf = perf_open_event(events[i]);
		ASSERT_EQ(0, perf_set_bpf(perf, field_prog(&self->area, 12, 4)));
		area_set(&self->area, 0, ~0ULL);
		hit();
		EXPECT_EQ(i + 1, area_get(&self->area, 1));
		EXPECT_EQ(0, area_get(&self->area, 0));
		close(perf);
	}
}

static int load_access(__u8 code, int off)
{
	struct bpf_insn insns[] = {
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_RAW_INSN(code, BPF_CLASS(code) == BPF_LDX ? BPF_REG_0 : BPF_REG_1,
			     BPF_CLASS(code) == BPF_LDX ? BPF_REG_1 : BPF_REG_0, off, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int fd = tp_load(insns, ARRAY_SIZE(insns));

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

TEST_F(program, context)
{
	const int load = BPF_LDX | BPF_MEM;

	EXPECT_EQ(0, load_access(load | BPF_DW, 8));
	EXPECT_EQ(0, load_access(load | BPF_B, 8));
	EXPECT_EQ(0, load_access(load | BPF_DW, 8184));
	/* The common fields, past every record, between numbers, to write */
	EXPECT_EQ(-EACCES, load_access(load | BPF_DW, 0));
	EXPECT_EQ(-EACCES, load_access(load | BPF_W, 4));
	EXPECT_EQ(-EACCES, load_access(load | BPF_B, 7));
	EXPECT_EQ(-EACCES, load_access(load | BPF_DW, 8192));
	EXPECT_EQ(-EACCES, load_access(load | BPF_DW, 12));
	EXPECT_EQ(-EACCES, load_access(BPF_STX | BPF_MEM | BPF_DW, 8));
}

TEST_F(program, context_has_nothing_before_it)
{
	EXPECT_EQ(-EACCES, load_access(BPF_LDX | BPF_MEM | BPF_DW, -8));
	EXPECT_EQ(-EACCES, load_access(BPF_LDX | BPF_MEM | BPF_B, -1));
}

TEST_F(program, on_a_kprobe_event)
{
	struct probe probe;
	int fd, prog = field_prog(&self->area, 8, 4);

	ASSERT_LE(0, prog);
	ASSERT_EQ(0, probe_create(&probe, 0));
	EXPECT_EQ(-EINVAL, attach(&probe, prog));
	EXPECT_EQ(-EINVAL, attach_link(&probe, prog, 0));
	probe.flags = PROBE_PMU;
	fd = attach(&probe, prog);
	EXPECT_EQ(-EINVAL, fd);
}

#define RECORD_END 64	/* of a call with six arguments, the longest */
#define RECORD_MAX 8192

/* Slot 0 counts, slot 1 has the bits that are set in what comes after the record */
static int past_prog(struct area *area)
{
	const struct bpf_insn end[] = {
		AREA(BPF_REG_1, area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_8, 8),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	struct bpf_insn insns[1 + 2 * (RECORD_MAX - RECORD_END) / 8 + ARRAY_SIZE(end)];
	size_t off, n = 0;

	insns[n++] = BPF_MOV64_IMM(BPF_REG_8, 0);
	for (off = RECORD_END; off < RECORD_MAX; off += 8) {
		insns[n++] = BPF_LDX_MEM(BPF_DW, BPF_REG_2, BPF_REG_1, off);
		insns[n++] = BPF_ALU64_REG(BPF_OR, BPF_REG_8, BPF_REG_2);
	}
	memcpy(insns + n, end, sizeof(end));
	return tp_load(insns, ARRAY_SIZE(insns));
}

/* The record is checked for the program that is attached, not for one that it calls. */
TEST_F(program, calls_one_that_reads_past_the_record)
{
	static const char * const events[] = { ENTER, EXIT };
	int i, perf, calls, called = past_prog(&self->area);
	int map = map_create(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0);
	const struct bpf_insn insns[] = {
		BPF_LD_MAP_FD(BPF_REG_2, map),
		BPF_MOV64_IMM(BPF_REG_3, 0),
		BPF_EMIT_CALL(BPF_FUNC_tail_call),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	__u32 key = 0;

	ASSERT_LE(0, called);
	ASSERT_LE(0, map);
	ASSERT_EQ(0, map_update(map, &key, &called));
	calls = tp_load(insns, ARRAY_SIZE(insns));
	ASSERT_LE(0, calls);
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		perf = perf_open_event(events[i]);
		ASSERT_LE(0, perf);
		EXPECT_EQ(-EACCES, perf_set_bpf(perf, called));
		ASSERT_EQ(0, perf_set_bpf(perf, calls));
		area_set(&self->area, 0, 0);
		area_set(&self->area, 1, -1);
		hit_arg(SCHED_RR);
		close(perf);
		EXPECT_EQ(1, area_get(&self->area, 0));
		EXPECT_EQ(0, area_get(&self->area, 1));
	}
}

TEST_F(program, cookie)
{
	struct bpf_insn insns[] = {
		BPF_EMIT_CALL(BPF_FUNC_get_attach_cookie),
		AREA(BPF_REG_1, &self->area, 0),
		BPF_STX_MEM(BPF_DW, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int link, prog = tp_load(insns, ARRAY_SIZE(insns));

	ASSERT_LE(0, prog);
	link = link_create(prog, self->perf, BPF_PERF_EVENT, 0, COOKIE);
	ASSERT_LE(0, link);
	hit_rename();
	EXPECT_EQ(COOKIE, area_get(&self->area, 0));
}

TEST_F(program, link_info)
{
	static const char * const events[] = { RENAME, ENTER, EXIT };
	int i, link, prog = field_prog(&self->area, 8, 4);
	struct bpf_link_info info;
	char name[128];

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		link = link_create(prog, perf_open_event(events[i]), BPF_PERF_EVENT, 0, i);
		ASSERT_LE(0, link);
		memset(&info, 0, sizeof(info));
		info.perf_event.tracepoint.tp_name = (unsigned long)name;
		info.perf_event.tracepoint.name_len = sizeof(name);
		ASSERT_EQ(0, link_info(link, &info));
		EXPECT_EQ(BPF_LINK_TYPE_PERF_EVENT, info.type);
		EXPECT_EQ(prog_id(prog), info.prog_id);
		EXPECT_EQ(BPF_PERF_EVENT_TRACEPOINT, info.perf_event.type);
		EXPECT_EQ(i, info.perf_event.tracepoint.cookie);
		EXPECT_STREQ(strchr(events[i], '/') + 1, name);
	}
}

/* Where helpers find registers: a kernel stack has the kernel's addresses */
TEST_F(program, kernel_stack)
{
	struct bpf_insn insns[] = {
		AREA(BPF_REG_2, &self->area, 1),
		BPF_MOV64_REG(BPF_REG_6, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_3, 16 * 8),
		BPF_MOV64_IMM(BPF_REG_4, 0),
		BPF_EMIT_CALL(BPF_FUNC_get_stack),
		BPF_STX_MEM(BPF_DW, BPF_REG_6, BPF_REG_0, -8),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};
	int prog;

	/* Back from slot 1 to slot 0 */
	insns[6].off = 16 * 8;
	prog = tp_load(insns, ARRAY_SIZE(insns));
	ASSERT_LE(0, prog);
	ASSERT_EQ(0, perf_set_bpf(self->perf, prog));
	hit_rename();
	EXPECT_LT(8, (long)area_get(&self->area, 17));
	EXPECT_LE(ksym("_stext"), area_get(&self->area, 1));
	EXPECT_GT(ksym("_etext"), area_get(&self->area, 1));
}

TEST_HARNESS_MAIN
