// SPDX-License-Identifier: GPL-2.0
/* Programs in softirqs, hard interrupts and NMIs, attached in each of the ways */
#include <arpa/inet.h>

#include "common.h"
#include "interrupt.h"
#include "uprobe.h"
#include "ways.h"

/* Where a hit is; each way has a slot for each of them */
enum { TASK, SOFTIRQ, HARDIRQ, NMI, CONTEXTS };

#if defined(__x86_64__)
/* In struct pcpu_hot, behind a pointer */
#define PREEMPT_COUNT 8
#define PREEMPT_COUNT_VAR "pcpu_hot"
#else
#error "Say where this architecture has its preempt_count"
#endif

/* A message to ourselves, which is received in a softirq */
static void send_packet(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	sendto(fd, "", 1, 0, (void *)&addr, sizeof(addr));
	close(fd);
}

FIXTURE(interrupt) {
	struct area area;
	struct probe probes[WAYS];
	int var;
};

FIXTURE_VARIANT(interrupt) {
	struct place place;
	int context;
	void (*hit)(void);
};

FIXTURE_VARIANT_ADD(interrupt, softirq) {
	.place = { "net_rx_action", "irq", "softirq_entry" },
	.context = SOFTIRQ,
	.hit = send_packet,
};

FIXTURE_VARIANT_ADD(interrupt, hardirq) {
	.place = HARDIRQ_PLACE,
	.context = HARDIRQ,
	.hit = wait_tick,
};

FIXTURE_VARIANT_ADD(interrupt, nmi) {
	.place = NMI_PLACE,
	.context = NMI,
	.hit = cause_nmi,
};

FIXTURE_SETUP(interrupt)
{
	const char *missing = ways_prepare();
	unsigned int i;

	if (!missing && variant->context == NMI)
		missing = nmi_prepare();
	SKIP_WITHOUT(return, missing);
	self->var = btf_type_id(BTF_KIND_VAR, PREEMPT_COUNT_VAR);
	ASSERT_LT(0, self->var);
	ASSERT_EQ(0, area_create(&self->area));
	ASSERT_EQ(0, instance_create(INSTANCE));
	for (i = 0; i < WAYS; i++)
		ASSERT_EQ(0, way_create(&ways[i], &variant->place, &self->probes[i]));
	ASSERT_EQ(0, pin(0));
	ASSERT_EQ(0, console_mute());
}

FIXTURE_TEARDOWN_PARENT(interrupt)
{
	console_unmute();
	EXPECT_STREQ("nothing", instance_left(INSTANCE));
	EXPECT_STREQ("nothing", leftovers());
}

/* Counts in one of CONTEXTS slots, from @slot on */
static int context_prog(const struct way *way, const struct place *place,
			struct area *area, unsigned int slot, int var)
{
	struct bpf_insn insns[] = {
		BPF_LD_IMM64_RAW_FULL(BPF_REG_1, BPF_PSEUDO_BTF_ID, 0, 0, var, 0),
		BPF_EMIT_CALL(BPF_FUNC_this_cpu_ptr),
		BPF_LDX_MEM(BPF_W, BPF_REG_0, BPF_REG_0, PREEMPT_COUNT),
		BPF_MOV64_IMM(BPF_REG_2, 8 * NMI),
		BPF_JMP_IMM(BPF_JSET, BPF_REG_0, 0xf00000, 5),
		BPF_MOV64_IMM(BPF_REG_2, 8 * HARDIRQ),
		BPF_JMP_IMM(BPF_JSET, BPF_REG_0, 0xf0000, 3),
		BPF_MOV64_IMM(BPF_REG_2, 8 * SOFTIRQ),
		/* It is an odd number where one is served, else they are off */
		BPF_JMP_IMM(BPF_JSET, BPF_REG_0, 0x100, 1),
		BPF_MOV64_IMM(BPF_REG_2, 8 * TASK),
		AREA(BPF_REG_1, area, slot),
		BPF_ALU64_REG(BPF_ADD, BPF_REG_1, BPF_REG_2),
		BPF_MOV64_IMM(BPF_REG_0, 1),
		BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_1, BPF_REG_0, 0),
		BPF_MOV64_IMM(BPF_REG_0, 0),
		BPF_EXIT_INSN(),
	};

	return way_load(way, place, insns, ARRAY_SIZE(insns));
}

/* Hits until the program has run in the context */
static bool runs_in(struct area *area, unsigned int slot, void (*hit)(void))
{
	__u64 before = area_get(area, slot);

	return wait_between(area_get(area, slot) > before, hit());
}

static __u64 all_runs(struct area *area, unsigned int slot)
{
	__u64 sum = 0;
	int i;

	for (i = 0; i < CONTEXTS; i++)
		sum += area_get(area, slot + i);
	return sum;
}

/* Nothing interrupts what is entered in NMIs, other than them */
static bool context_is_likely(struct area *area, unsigned int slot, int context)
{
	return context == NMI || !area_get(area, slot + NMI);
}

TEST_F(interrupt, each_way)
{
	unsigned int i, slot;
	int fd, prog;
	__u64 runs;

	for (i = 0; i < WAYS; i++) {
		if (!way_exists(&ways[i]))
			continue;
		slot = i * CONTEXTS;
		prog = context_prog(&ways[i], &variant->place, &self->area, slot, self->var);
		ASSERT_LE(0, prog) TH_LOG("%s", ways[i].name);
		fd = way_attach(&ways[i], &variant->place, &self->probes[i], prog);
		ASSERT_LE(0, fd) TH_LOG("%s", ways[i].name);
		EXPECT_TRUE(runs_in(&self->area, slot + variant->context, variant->hit))
			TH_LOG("%s", ways[i].name);
		EXPECT_TRUE(context_is_likely(&self->area, slot, variant->context))
			TH_LOG("%s", ways[i].name);
		close(fd);
		runs = all_runs(&self->area, slot);
		variant->hit();
		EXPECT_EQ(runs, all_runs(&self->area, slot)) TH_LOG("%s", ways[i].name);
		EXPECT_EQ(0, misses(prog)) TH_LOG("%s", ways[i].name);
		close(prog);
	}
}

/* Whether the trace has the event in a context, which is the third of its flags */
static bool traced_as(const char *event, const char *marks)
{
	char name[64], line[256], *flags;
	bool found = false;
	FILE *file = fopen(INSTANCE "/trace", "re");

	if (!file)
		return false;
	snprintf(name, sizeof(name), " %s: ", event);
	while (!found && fgets(line, sizeof(line), file)) {
		flags = strstr(line, "] ");
		found = flags && strstr(flags, name) && strchr(marks, flags[4]);
	}
	fclose(file);
	return found;
}

TEST_F(interrupt, trace_tells_context)
{
	static const char * const marks[] = { [SOFTIRQ] = "s", [HARDIRQ] = "hH", [NMI] = "zZ" };
	char event[64];

	snprintf(event, sizeof(event), "%s/%s", variant->place.group, variant->place.event);
	ASSERT_EQ(0, event_enable(INSTANCE, event, true));
	EXPECT_TRUE(wait_between(traced_as(variant->place.event, marks[variant->context]),
				 variant->hit()));
}

/* Those at one place take turns; none of them keeps another from running */
TEST_F(interrupt, all_ways_at_once)
{
	int fds[WAYS], progs[WAYS];
	unsigned int i, slot;

	for (i = 0; i < WAYS; i++) {
		fds[i] = -1;
		if (!way_exists(&ways[i]))
			continue;
		progs[i] = context_prog(&ways[i], &variant->place, &self->area, i * CONTEXTS,
					self->var);
		fds[i] = way_attach(&ways[i], &variant->place, &self->probes[i], progs[i]);
		ASSERT_LE(0, fds[i]) TH_LOG("%s", ways[i].name);
	}
	for (i = 0; i < WAYS; i++) {
		if (fds[i] < 0)
			continue;
		slot = i * CONTEXTS + variant->context;
		EXPECT_TRUE(runs_in(&self->area, slot, variant->hit))
			TH_LOG("%s", ways[i].name);
	}
	for (i = 0; i < WAYS; i++)
		close(fds[i]);
}

TEST_HARNESS_MAIN
