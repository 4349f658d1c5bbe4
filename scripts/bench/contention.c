// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU: counts what CPUs do that gets in the way of each other. Between
 * MARK_BEGIN and MARK_END, which the guest executes, these are
 *  - locked instructions, of all CPUs;
 *  - stores to lines of 64 bytes to which at least two CPUs store.
 * Instructions that do so less than "least=N" times are left out: ticks of the clock
 * are not what is measured. Each pair of marks gives lines "# KIND ADDRESS COUNT" for
 * the others in the file "out=FILE", and the sums, "LOCKED SHARED". QEMU must run all
 * CPUs in one thread.
 *
 * Debian has no package with qemu-plugin.h: what is used of it is declared here, by
 * the documentation of version 1 of the interface.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"

#define MAX_CPUS 8

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_info;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*tb_trans_fn)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*exec_fn)(unsigned int cpu, void *arg);
typedef void (*mem_fn)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *arg);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_fn fn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn fn,
					    enum qemu_plugin_cb_flags flags, void *arg);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, mem_fn fn,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw, void *arg);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t addr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *addr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *addr);

EXPORT int qemu_plugin_version = 1;

/* Stores of one instruction to one line, and all executions of a locked one (line 0) */
struct place {
	uint64_t line, insn;
	uint64_t counts[MAX_CPUS];
};

#define PLACES (1 << 19)

static struct place places[PLACES];
static unsigned int used;
static bool counting;
static uint64_t least;
static FILE *out;

static struct place *place_of(uint64_t line, uint64_t insn)
{
	uint64_t i = ((line * 0x9e3779b97f4a7c15 ^ insn * 0xc2b2ae3d27d4eb4f) >> 32) % PLACES;

	while (places[i].insn && (places[i].line != line || places[i].insn != insn))
		i = (i + 1) % PLACES;
	if (!places[i].insn) {
		if (++used > PLACES / 2) {
			fprintf(stderr, "contention: too many places\n");
			exit(1);
		}
		places[i].line = line;
		places[i].insn = insn;
	}
	return &places[i];
}

static void on_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t addr, void *arg)
{
	struct qemu_plugin_hwaddr *at;
	struct place *place;

	/* QEMU 7.2 also comes here for loads. */
	if (!counting || !qemu_plugin_mem_is_store(info))
		return;
	at = qemu_plugin_get_hwaddr(info, addr);
	if (!at || qemu_plugin_hwaddr_is_io(at))
		return;
	place = place_of(1 + qemu_plugin_hwaddr_phys_addr(at) / 64, (uintptr_t)arg);
	place->counts[cpu % MAX_CPUS]++;
}

static void on_locked(unsigned int cpu, void *arg)
{
	if (counting)
		place_of(0, (uintptr_t)arg)->counts[cpu % MAX_CPUS]++;
}

static int by_line(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->line < y->line ? -1 : x->line > y->line;
}

static int by_insn(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

/* Takes together what @nr places say of each instruction, and sums up what is frequent */
static uint64_t sum_up(const char *kind, struct place *from, size_t nr)
{
	struct place *end = from + nr, *next;
	uint64_t count, sum = 0;
	unsigned int cpu;

	qsort(from, nr, sizeof(*from), by_insn);
	for (; from < end; from = next) {
		count = 0;
		for (next = from; next < end && next->insn == from->insn; next++) {
			for (cpu = 0; cpu < MAX_CPUS; cpu++)
				count += next->counts[cpu];
		}
		if (count < least)
			continue;
		sum += count;
		fprintf(out, "# %s %" PRIx64 " %" PRIu64 "\n", kind, from->insn, count);
	}
	return sum;
}

/* Places of one line: do at least two CPUs often store there? */
static bool is_shared(const struct place *from, const struct place *end)
{
	uint64_t counts[MAX_CPUS] = {};
	unsigned int cpu, cpus = 0;

	for (; from < end; from++) {
		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			counts[cpu] += from->counts[cpu];
	}
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		cpus += counts[cpu] && counts[cpu] >= least / MAX_CPUS;
	return cpus >= 2;
}

static void report(void)
{
	struct place *first, *next, *shared, *end = places;
	uint64_t locked_sum, shared_sum;
	size_t i;

	for (i = 0; i < PLACES; i++) {
		if (places[i].insn)
			*end++ = places[i];
	}
	qsort(places, end - places, sizeof(*places), by_line);
	for (first = places; first < end && !first->line; first++)
		;
	locked_sum = sum_up("locked", places, first - places);
	for (shared = places; first < end; first = next) {
		for (next = first; next < end && next->line == first->line; next++)
			;
		if (is_shared(first, next)) {
			memmove(shared, first, (next - first) * sizeof(*first));
			shared += next - first;
		}
	}
	shared_sum = sum_up("shared", places, shared - places);
	fprintf(out, "%" PRIu64 " %" PRIu64 "\n", locked_sum, shared_sum);
	fflush(out);
}

static void on_begin(unsigned int cpu, void *arg)
{
	memset(places, 0, sizeof(places));
	used = 0;
	counting = true;
}

static void on_end(unsigned int cpu, void *arg)
{
	counting = false;
	report();
}

/* "lock", or an exchange with memory, which locks without being told */
static bool is_locked(const uint8_t *code, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++) {
		if (code[i] == 0xf0)
			return true;
		if (code[i] != 0x66 && code[i] != 0x67 && code[i] != 0x2e && code[i] != 0x3e &&
		    code[i] != 0x64 && code[i] != 0x65 && code[i] != 0xf2 && code[i] != 0xf3)
			break;
	}
	if (i < size && (code[i] & 0xf0) == 0x40) /* REX */
		i++;
	return i + 1 < size && (code[i] & 0xfe) == 0x86 && code[i + 1] < 0xc0;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t i, size, n = qemu_plugin_tb_n_insns(tb);

	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);
		void *addr = (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn);

		size = qemu_plugin_insn_size(insn);
		if (size == strlen(MARK_BEGIN) && !memcmp(code, MARK_BEGIN, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (size == strlen(MARK_END) && !memcmp(code, MARK_END, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		if (is_locked(code, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_locked,
							       QEMU_PLUGIN_CB_NO_REGS, addr);
		qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_W, addr);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			       int argc, char **argv)
{
	int i;

	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		else if (!strncmp(argv[i], "least=", 6))
			least = atoi(argv[i] + 6);
	}
	if (!out) {
		fprintf(stderr, "contention: out=FILE\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
