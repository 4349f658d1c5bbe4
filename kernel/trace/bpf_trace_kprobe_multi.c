// SPDX-License-Identifier: GPL-2.0
/*
 * Links of one kprobe program to the entry or return of many functions, or,
 * as a session, to both. One fprobe serves all functions of a link:
 *
 *	fprobe --> ftrace, at each of sites[].addr
 *	  |
 *	link --> sites[]	sorted by address
 *		   addr		start of the function
 *		   cookie	what bpf_get_attach_cookie() returns there
 *
 * The modules that functions are in stay for as long as the link does. What a
 * link leaves behind is freed later, together with that of others.
 */
#include <linux/atomic.h>
#include <linux/bpf.h>
#include <linux/bpf_events.h>
#include <linux/bsearch.h>
#include <linux/error-injection.h>
#include <linux/filter.h>
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/rethook.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bpf_trace.h"
#include "bpf_trace_helpers.h"
#include "ftrace_internal.h"
#include "trace.h"

/* How many functions one link takes at most. ABI. */
#define KPROBE_MULTI_MAX_SITES	1048576

struct kprobe_multi_site {
	unsigned long	addr;
	u64		cookie;
};

struct bpf_kprobe_multi_link {
	struct bpf_link				link;
	struct bpf_attachment			att;
	struct fprobe				fp;
	struct module				**mods;	/* held until release */
	u32					nr_mods;
	u32					flags;
	bool					has_cookies;
	bool					was_registered;
	struct llist_node			gone; /* in kprobe_multi_gone */
	u32					nr_sites;
	struct kprobe_multi_site		sites[] __counted_by(nr_sites);
};

/* The sites of a link that is being made. A name can be that of several functions. */
struct kprobe_multi_sites {
	struct kprobe_multi_site	*sites;
	const struct kprobe_multi_symbol *syms;	/* whose functions they are */
	u32				nr;
	u32				room;
};

static struct bpf_kprobe_multi_link *kprobe_multi_link(const struct bpf_link *link)
{
	return container_of(link, struct bpf_kprobe_multi_link, link);
}

static struct bpf_kprobe_multi_link *kprobe_multi_of(struct fprobe *fp)
{
	return container_of(fp, struct bpf_kprobe_multi_link, fp);
}

static bool kprobe_multi_is_session(const struct bpf_kprobe_multi_link *link)
{
	return link->link.prog->expected_attach_type == BPF_TRACE_KPROBE_SESSION;
}

static int kprobe_multi_site_cmp(const void *a, const void *b)
{
	const struct kprobe_multi_site *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static noinline u64
kprobe_multi_find_cookie(const struct bpf_kprobe_multi_link *link, unsigned long addr)
{
	const struct kprobe_multi_site key = { .addr = addr };
	const struct kprobe_multi_site *site;

	/* not bsearch(), which may be one of the functions */
	site = __inline_bsearch(&key, link->sites, link->nr_sites, sizeof(key),
				kprobe_multi_site_cmp);
	return site ? site->cookie : 0;
}

NOKPROBE_SYMBOL(kprobe_multi_find_cookie);

static __always_inline u64
kprobe_multi_cookie(const struct bpf_kprobe_multi_link *link, unsigned long addr)
{
	return link->has_cookies ? kprobe_multi_find_cookie(link, addr) : 0;
}

static __always_inline int
kprobe_multi_hit(const struct bpf_kprobe_multi_link *link, unsigned long func_ip,
		 struct pt_regs *regs, bool is_return, void *session_cookie)
{
	const struct bpf_session_hit hit = {
		.hit.cookie = kprobe_multi_cookie(link, func_ip),
		.hit.func_ip = func_ip,
		.is_return = is_return,
		.cookie = session_cookie,
		.att = &link->att,
	};

	return bpf_attachment_hit(&link->att, &hit.hit, regs);
}

static noinline int
kprobe_multi_run_on_top(const struct bpf_kprobe_multi_link *link, unsigned long ip,
			struct pt_regs *regs, bool is_return, void *session_cookie)
{
	struct bpf_run_below below;
	enum bpf_miss why;
	int ret;

	why = bpf_guard_enter_on_top(&below, &link->att);
	if (why != BPF_NR_MISSES) {
		/* A session does not get to see the return alone, and misses both. */
		if (session_cookie && !is_return)
			bpf_attachment_missed(&link->att, why);
		return -EBUSY;
	}
	rcu_read_lock();
	ret = kprobe_multi_hit(link, bpf_func_start(ip), regs, is_return, session_cookie);
	rcu_read_unlock();
	bpf_guard_exit_on_top(&below);
	return ret;
}

NOKPROBE_SYMBOL(kprobe_multi_run_on_top);

/*
 * Fprobe calls with preemption disabled, from anywhere that ftrace can be. It has
 * no guard of its own against recursion for these handlers.
 *
 * Return: what the program returns; -EBUSY if the guard turned it away, 0 (1 of a session) if
 * its limits forbid it.
 */
static __always_inline int
kprobe_multi_run(struct bpf_kprobe_multi_link *link, unsigned long ip, struct pt_regs *regs,
		 bool is_return, void *session_cookie)
{
	int ret;

	if (!bpf_guard_enter())
		return kprobe_multi_run_on_top(link, ip, regs, is_return, session_cookie);

	ret = kprobe_multi_hit(link, bpf_func_start(ip), regs, is_return, session_cookie);
	bpf_guard_exit();
	return ret;
}

static int kprobe_multi_entry(struct fprobe *fp, unsigned long entry_ip,
			      unsigned long ret_ip, struct pt_regs *regs, void *data)
{
	return kprobe_multi_run(kprobe_multi_of(fp), entry_ip, regs, false, NULL);
}

NOKPROBE_SYMBOL(kprobe_multi_entry);

/*
 * Fprobe leaves out the return of a call for which this is not 0. That is for
 * the program of a session to decide.
 */
static int kprobe_session_entry(struct fprobe *fp, unsigned long entry_ip,
				unsigned long ret_ip, struct pt_regs *regs, void *data)
{
	*(u64 *)data = 0;
	return kprobe_multi_run(kprobe_multi_of(fp), entry_ip, regs, false, data);
}

NOKPROBE_SYMBOL(kprobe_session_entry);

static void kprobe_multi_return(struct fprobe *fp, unsigned long entry_ip,
				unsigned long ret_ip, struct pt_regs *regs, void *data)
{
	kprobe_multi_run(kprobe_multi_of(fp), entry_ip, regs, true, data);
}

NOKPROBE_SYMBOL(kprobe_multi_return);

/*
 * Where RCU is not watching, the program may be gone. The link is not: it stays
 * until every CPU has scheduled.
 */
static void kprobe_multi_missed(struct fprobe *fp)
{
	struct bpf_kprobe_multi_link *link = kprobe_multi_of(fp);

	if (rcu_is_watching())
		bpf_attachment_missed(&link->att, BPF_MISS_NO_RETURN);
	else
		this_cpu_inc(link->att.stats->missed[BPF_MISS_NO_RCU]);
}

NOKPROBE_SYMBOL(kprobe_multi_missed);

/* Both ends of the call */
static void kprobe_session_missed(struct fprobe *fp)
{
	kprobe_multi_missed(fp);
	kprobe_multi_missed(fp);
}

NOKPROBE_SYMBOL(kprobe_session_missed);

enum kprobe_multi_error {
	KPROBE_MULTI_FLAGS,
	KPROBE_MULTI_SLEEPS,
	KPROBE_MULTI_WHERE,
	KPROBE_MULTI_NONE,
	KPROBE_MULTI_MANY,
	KPROBE_MULTI_LONG_NAME,
	KPROBE_MULTI_NO_SYMBOL,
	KPROBE_MULTI_CHANGED,
	KPROBE_MULTI_NOT_TRACED,
	KPROBE_MULTI_BAD_ADDR,
	KPROBE_MULTI_TWICE,
	KPROBE_MULTI_NOT_INJECTABLE,
	KPROBE_MULTI_MODULE_NOT_LIVE,
	KPROBE_MULTI_SESSION_RETURN,
};

static struct tracing_refusal kprobe_multi_errors[] = {
	[KPROBE_MULTI_FLAGS] = { -EINVAL,
		"The only flag of a kprobe_multi link is BPF_F_KPROBE_MULTI_RETURN" },
	[KPROBE_MULTI_SLEEPS] = { -EINVAL,
		"This program may sleep, which only uprobes allow" },
	[KPROBE_MULTI_WHERE] = { -EINVAL,
		"Functions are given by either syms or addrs" },
	[KPROBE_MULTI_NONE] = { -EINVAL, "A link needs a function at least" },
	[KPROBE_MULTI_MANY] = { -E2BIG,
		"A link takes " __stringify(KPROBE_MULTI_MAX_SITES) " functions at most" },
	[KPROBE_MULTI_LONG_NAME] = { -E2BIG, "No symbol has a name of this length" },
	[KPROBE_MULTI_NO_SYMBOL] = { -ESRCH,
		"The kernel has no symbol of this name; what is inlined has none" },
	[KPROBE_MULTI_CHANGED] = { -ESRCH,
		"The compiler made other functions of this one, choose one of them" },
	[KPROBE_MULTI_NOT_TRACED] = { -ESRCH,
		"This cannot be traced, available_filter_functions lists what can" },
	[KPROBE_MULTI_BAD_ADDR] = { -EINVAL,
		"Not the start of a function that can be traced" },
	[KPROBE_MULTI_TWICE] = { -ESRCH, "This symbol is in the list twice" },
	[KPROBE_MULTI_NOT_INJECTABLE] = { -EINVAL,
		"The program overrides return values, the function forbids it" },
	[KPROBE_MULTI_MODULE_NOT_LIVE] = { -EINVAL,
		"The module of this function is not loaded yet, or goes away" },
	[KPROBE_MULTI_SESSION_RETURN] = { -EINVAL,
		"A session runs at both ends of a call, and takes no BPF_F_KPROBE_MULTI_RETURN" },
};

#define KPROBE_MULTI_CMD "LINK_CREATE kprobe_multi "

#define kprobe_multi_refuse(_log, _error, _fmt, ...)				\
	bpf_refuse(_log, &kprobe_multi_errors[_error], strlen(KPROBE_MULTI_CMD),	\
		   KPROBE_MULTI_CMD _fmt, __VA_ARGS__)

static int kprobe_multi_refuse_symbol(struct bpf_verifier_log *log,
				      enum kprobe_multi_error error, const char *symbol)
{
	return kprobe_multi_refuse(log, error, "%s", symbol);
}

static int kprobe_multi_refuse_addr(struct bpf_verifier_log *log,
				    enum kprobe_multi_error error, unsigned long addr)
{
	if (!kallsyms_show_value(current_cred()))
		return kprobe_multi_refuse(log, error, "%s", "(hidden)");
	return kprobe_multi_refuse(log, error, "0x%lx (%ps)", addr, (void *)addr);
}

struct kprobe_multi_symbol {
	const char	*name;
	u64		cookie;
};

static int kprobe_multi_symbol_cmp(const void *a, const void *b)
{
	const struct kprobe_multi_symbol *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int kprobe_multi_get_symbols(struct kprobe_multi_symbol *syms, u64 usyms,
				    const struct kprobe_multi_sites *from,
				    struct bpf_verifier_log *log)
{
	const char __user * const __user *uptr = u64_to_user_ptr(usyms);
	const char __user *usym;
	u32 i;

	for (i = 0; i < from->nr; i++) {
		if (get_user(usym, uptr + i))
			return -EFAULT;
		syms[i].name = strndup_user(usym, KSYM_NAME_LEN);
		if (IS_ERR(syms[i].name)) {
			int err = PTR_ERR(syms[i].name);

			syms[i].name = NULL;
			/* what strndup_user() says of a string that is too long */
			if (err == -EINVAL)
				return kprobe_multi_refuse(log, KPROBE_MULTI_LONG_NAME,
							   "syms[%u]", i);
			return err;
		}
		syms[i].cookie = from->sites[i].cookie;
	}
	return 0;
}

static int kprobe_multi_refuse_missing(struct bpf_verifier_log *log, const char *symbol)
{
	char *buf = kmalloc(PAGE_SIZE, GFP_KERNEL);
	enum kprobe_multi_error error = KPROBE_MULTI_NO_SYMBOL;
	struct seq_buf text;
	int err;

	if (!buf)
		return kprobe_multi_refuse_symbol(log, error, symbol);
	seq_buf_init(&text, buf, PAGE_SIZE);
	seq_buf_puts(&text, symbol);
	if (tracing_show_variants(&text, NULL, symbol))
		error = KPROBE_MULTI_CHANGED;
	err = kprobe_multi_refuse_symbol(log, error, seq_buf_str(&text));
	kfree(buf);
	return err;
}

/* Some of the sorted @names were not found: which, and why? */
static int kprobe_multi_refuse_symbols(struct bpf_verifier_log *log, const char **names,
				       const unsigned long *addrs, u32 nr)
{
	u32 i;

	for (i = 0; i < nr && addrs[i]; i++)
		;
	if (i == nr)
		return -ESRCH;
	if ((i && !strcmp(names[i], names[i - 1])) ||
	    (i + 1 < nr && !strcmp(names[i], names[i + 1])))
		return kprobe_multi_refuse_symbol(log, KPROBE_MULTI_TWICE, names[i]);
	if (!kallsyms_lookup_name(names[i]))
		return kprobe_multi_refuse_missing(log, names[i]);
	return kprobe_multi_refuse_symbol(log, KPROBE_MULTI_NOT_TRACED, names[i]);
}

/* There are fewer functions than u32 can count. */
static int kprobe_multi_add_site(void *data, size_t sym, unsigned long ip)
{
	struct kprobe_multi_sites *to = data;
	struct kprobe_multi_site *sites;

	if (to->nr == to->room) {
		sites = kvrealloc(to->sites, array_size(2 * to->room, sizeof(*sites)),
				  GFP_KERNEL);
		if (!sites)
			return -ENOMEM;
		to->sites = sites;
		to->room *= 2;
	}
	to->sites[to->nr].addr = bpf_func_start(ip);
	to->sites[to->nr++].cookie = to->syms[sym].cookie;
	return 0;
}

static int kprobe_multi_from_symbols(struct kprobe_multi_sites *to, u64 usyms,
				     struct bpf_verifier_log *log)
{
	u32 i, nr = to->nr;
	unsigned long *addrs;
	struct kprobe_multi_symbol *syms;
	const char **names;
	int err = -ENOMEM;

	syms = kvcalloc(nr, sizeof(*syms), GFP_KERNEL);
	names = kvcalloc(nr, sizeof(*names), GFP_KERNEL);
	addrs = kvcalloc(nr, sizeof(*addrs), GFP_KERNEL);
	if (!syms || !names || !addrs)
		goto out;

	err = kprobe_multi_get_symbols(syms, usyms, to, log);
	if (err)
		goto out;

	sort(syms, nr, sizeof(*syms), kprobe_multi_symbol_cmp, NULL);
	for (i = 0; i < nr; i++)
		names[i] = syms[i].name;
	to->syms = syms;
	to->nr = 0;
	err = ftrace_lookup_all_symbols(names, nr, addrs, kprobe_multi_add_site, to);
	if (err == -ESRCH)
		err = kprobe_multi_refuse_symbols(log, names, addrs, nr);
out:
	for (i = 0; syms && i < nr; i++)
		kfree(syms[i].name);
	kvfree(syms);
	kvfree(names);
	kvfree(addrs);
	return err;
}

static int kprobe_multi_from_addrs(struct kprobe_multi_sites *to, u64 uaddrs,
				   struct bpf_verifier_log *log)
{
	const unsigned long __user *uptr = u64_to_user_ptr(uaddrs);
	unsigned long addr, ip;
	u32 i;

	for (i = 0; i < to->nr; i++) {
		if (get_user(addr, uptr + i))
			return -EFAULT;
		ip = ftrace_location(addr);
		if (!ip)
			return kprobe_multi_refuse_addr(log, KPROBE_MULTI_BAD_ADDR, addr);
		to->sites[i].addr = bpf_func_start(ip);
	}
	return 0;
}

static int kprobe_multi_get_cookies(struct kprobe_multi_sites *to, u64 ucookies)
{
	const u64 __user *uptr = u64_to_user_ptr(ucookies);
	u32 i;

	for (i = 0; i < to->nr; i++) {
		if (get_user(to->sites[i].cookie, uptr + i))
			return -EFAULT;
	}
	return 0;
}

/* What the caller frees: to->sites, also after an error */
static int kprobe_multi_get_sites(struct kprobe_multi_sites *to, const union bpf_attr *attr,
				  struct bpf_verifier_log *log)
{
	int err = 0;

	to->nr = attr->link_create.kprobe_multi.cnt;
	to->room = to->nr;
	to->sites = kvcalloc(to->room, sizeof(*to->sites), GFP_KERNEL);
	if (!to->sites)
		return -ENOMEM;

	if (attr->link_create.kprobe_multi.cookies)
		err = kprobe_multi_get_cookies(to, attr->link_create.kprobe_multi.cookies);
	if (err)
		return err;

	if (attr->link_create.kprobe_multi.syms)
		err = kprobe_multi_from_symbols(to, attr->link_create.kprobe_multi.syms, log);
	else
		err = kprobe_multi_from_addrs(to, attr->link_create.kprobe_multi.addrs, log);
	if (err)
		return err;

	sort(to->sites, to->nr, sizeof(*to->sites), kprobe_multi_site_cmp, NULL);
	return 0;
}

static int kprobe_multi_check_override(const struct bpf_kprobe_multi_link *link,
				       struct bpf_verifier_log *log)
{
	unsigned long addr, offset;
	u32 i;

	for (i = 0; i < link->nr_sites; i++) {
		addr = link->sites[i].addr;
		/* On powerpc that can be behind the start of the function, which is listed. */
		if (!kallsyms_lookup_size_offset(addr, NULL, &offset) ||
		    !within_error_injection_list(addr - offset))
			return kprobe_multi_refuse_addr(log, KPROBE_MULTI_NOT_INJECTABLE, addr);
	}
	return 0;
}

/* Sites are sorted, so those of a module follow each other. */
static int kprobe_multi_hold_modules(struct bpf_kprobe_multi_link *link,
				     struct bpf_verifier_log *log)
{
	struct module *mod, **mods;
	unsigned long addr;
	bool held, gone;
	u32 i;

	for (i = 0; i < link->nr_sites; i++) {
		addr = link->sites[i].addr;
		scoped_guard(preempt) {
			mod = __module_address(addr);
			held = mod && link->nr_mods && mod == link->mods[link->nr_mods - 1];
			/*
			 * A reference keeps no module whose init fails, nor the code that is
			 * only for init. A module may have gone since its name was looked up.
			 */
			if (mod)
				gone = within_module_init(addr, mod) ||
				       (!held && (module_is_coming(mod) || !try_module_get(mod)));
			else
				gone = !core_kernel_text(addr);
		}
		if (gone)
			return kprobe_multi_refuse_addr(log, KPROBE_MULTI_MODULE_NOT_LIVE, addr);
		if (!mod || held)
			continue;

		mods = krealloc_array(link->mods, link->nr_mods + 1, sizeof(*mods),
				      GFP_KERNEL_ACCOUNT);
		if (!mods) {
			module_put(mod);
			return -ENOMEM;
		}
		mods[link->nr_mods++] = mod;
		link->mods = mods;
	}
	return 0;
}

static void kprobe_multi_put_modules(struct bpf_kprobe_multi_link *link)
{
	while (link->nr_mods)
		module_put(link->mods[--link->nr_mods]);
}

/*
 * Unregistering the fprobe takes its calls out of the functions. One grace period
 * later the program does not run any more: handlers test, with preemption disabled,
 * whether the fprobe is disabled, or its returns stopped. That is so even if ftrace is
 * dead and unregisters nothing; then the link is never freed. The grace period is an
 * expedited one, since patching the functions has interrupted all CPUs anyway.
 */
static void kprobe_multi_release(struct bpf_link *bpf_link)
{
	struct bpf_kprobe_multi_link *link = kprobe_multi_link(bpf_link);

	unregister_fprobe_nowait(&link->fp);
	synchronize_rcu_expedited();
	kprobe_multi_put_modules(link);
	link->was_registered = true;
}

static void kprobe_multi_free(struct bpf_kprobe_multi_link *link)
{
	kprobe_multi_put_modules(link);
	kfree(link->mods);
	bpf_attachment_exit(&link->att);
	kvfree(link);
}

/* Released links, which callers still in the trampoline may look at */
static LLIST_HEAD(kprobe_multi_gone);

/*
 * How many bytes they are. Where a kernel can be preempted, a task that is in it for
 * long and does not sleep keeps all of them: from some number on, new links wait.
 */
static atomic_long_t kprobe_multi_gone_size;
static DECLARE_WAIT_QUEUE_HEAD(kprobe_multi_freed);

/* About what a link takes: for each function, and for each call that can be under way */
static long kprobe_multi_size(const struct bpf_kprobe_multi_link *link)
{
	unsigned long size, calls = 0;

	if (link->fp.exit_handler)
		calls = link->fp.nr_maxactive ?: link->nr_sites * num_possible_cpus() * 2UL;
	size = link->nr_sites * (sizeof(link->sites[0]) + sizeof(struct ftrace_func_entry));
	size += calls * (sizeof(struct rethook_node) + link->fp.entry_data_size);
	/* Each CPU has a ring with room for a pointer to each of them. */
	return size + calls * num_possible_cpus() * sizeof(void *);
}

/* Return: whether they take no more than 1/1024 of the memory, or will never be free. */
static bool kprobe_multi_may_come(void)
{
	unsigned long size = atomic_long_read(&kprobe_multi_gone_size);

	return size >> PAGE_SHIFT <= totalram_pages() / 1024 || ftrace_is_dead();
}

static void kprobe_multi_free_gone(struct work_struct *work)
{
	struct llist_node *gone = llist_del_all(&kprobe_multi_gone);
	struct bpf_kprobe_multi_link *link, *next;

	ftrace_wait_for_callers();
	/* Functions may go on calling what it did not unregister. */
	if (!ftrace_is_dead()) {
		llist_for_each_entry_safe(link, next, gone, gone) {
			atomic_long_sub(kprobe_multi_size(link), &kprobe_multi_gone_size);
			free_fprobe(&link->fp);
			kprobe_multi_free(link);
		}
	}
	wake_up_all(&kprobe_multi_freed);
}

static DECLARE_WORK(kprobe_multi_gone_work, kprobe_multi_free_gone);

static void kprobe_multi_dealloc(struct bpf_link *bpf_link)
{
	struct bpf_kprobe_multi_link *link = kprobe_multi_link(bpf_link);

	if (!link->was_registered) {
		kprobe_multi_free(link);
		return;
	}
	atomic_long_add(kprobe_multi_size(link), &kprobe_multi_gone_size);
	if (llist_add(&link->gone, &kprobe_multi_gone))
		queue_work(system_unbound_wq, &kprobe_multi_gone_work);
}

static void kprobe_multi_show_fdinfo(const struct bpf_link *bpf_link, struct seq_file *m)
{
	const struct bpf_kprobe_multi_link *link = kprobe_multi_link(bpf_link);

	seq_printf(m, "func_cnt:\t%u\n", link->nr_sites);
	bpf_attachment_show(m, &link->att);
}

static int kprobe_multi_fill_info(const struct bpf_link *bpf_link, struct bpf_link_info *info)
{
	u64 __user *ucookies = u64_to_user_ptr(info->kprobe_multi.cookies);
	u64 __user *uaddrs = u64_to_user_ptr(info->kprobe_multi.addrs);
	const struct bpf_kprobe_multi_link *link = kprobe_multi_link(bpf_link);
	bool show = kallsyms_show_value(current_cred());
	struct bpf_attachment_stats sum = {};
	u32 i, room = info->kprobe_multi.count;

	if (!uaddrs != !room || (ucookies && !room))
		return -EINVAL;

	info->kprobe_multi.count = link->nr_sites;
	info->kprobe_multi.flags = link->flags;
	info->kprobe_multi.missed = bpf_attachment_sum(&link->att, &sum);
	for (i = 0; i < min(room, link->nr_sites); i++) {
		if (put_user(show ? (u64)link->sites[i].addr : 0, uaddrs + i))
			return -EFAULT;
		if (ucookies && put_user(link->sites[i].cookie, ucookies + i))
			return -EFAULT;
	}
	return room && room < link->nr_sites ? -ENOSPC : 0;
}

static const struct bpf_link_ops kprobe_multi_link_ops = {
	.release	= kprobe_multi_release,
	.dealloc	= kprobe_multi_dealloc,
	.show_fdinfo	= kprobe_multi_show_fdinfo,
	.fill_link_info	= kprobe_multi_fill_info,
};

static struct bpf_kprobe_multi_link *
kprobe_multi_link_new(struct bpf_prog *prog, const struct kprobe_multi_sites *from)
{
	struct bpf_kprobe_multi_link *link;

	link = kvzalloc(struct_size(link, sites, from->nr), GFP_KERNEL_ACCOUNT);
	if (!link)
		return NULL;

	if (bpf_attachment_init(&link->att, prog)) {
		kvfree(link);
		return NULL;
	}
	link->nr_sites = from->nr;
	memcpy(link->sites, from->sites, array_size(from->nr, sizeof(*from->sites)));
	return link;
}

/*
 * How many calls of all functions together can be under way between entry and
 * return. Fprobe's own measure is two for each function and CPU: too few where
 * one function sleeps, and too many for many functions, as each CPU has room
 * for all of them, 8 bytes each.
 */
#define KPROBE_MULTI_MIN_RETURNS	128UL
#define KPROBE_MULTI_MAX_RETURNS	65536UL

static int kprobe_multi_register(struct bpf_kprobe_multi_link *link)
{
	unsigned long *addrs;
	u32 i;
	int err;

	link->fp.flags = FPROBE_FL_GUARDED;
	link->fp.missed_handler = kprobe_multi_is_session(link) ?
				  kprobe_session_missed : kprobe_multi_missed;
	if (!(link->flags & BPF_F_KPROBE_MULTI_RETURN))
		link->fp.entry_handler = kprobe_multi_is_session(link) ?
					 kprobe_session_entry : kprobe_multi_entry;
	if (kprobe_multi_is_session(link) || link->flags & BPF_F_KPROBE_MULTI_RETURN)
		link->fp.exit_handler = kprobe_multi_return;
	if (kprobe_multi_is_session(link))
		link->fp.entry_data_size = sizeof(u64);
	link->fp.nr_maxactive = clamp(2UL * link->nr_sites * num_possible_cpus(),
				      KPROBE_MULTI_MIN_RETURNS, KPROBE_MULTI_MAX_RETURNS);

	addrs = kvmalloc_array(link->nr_sites, sizeof(*addrs), GFP_KERNEL);
	if (!addrs)
		return -ENOMEM;
	for (i = 0; i < link->nr_sites; i++)
		addrs[i] = link->sites[i].addr;
	err = register_fprobe_ips(&link->fp, addrs, link->nr_sites);
	kvfree(addrs);
	return err;
}

static int kprobe_multi_check(const union bpf_attr *attr, const struct bpf_prog *prog,
			      struct bpf_verifier_log *log)
{
	bool syms = attr->link_create.kprobe_multi.syms;
	u32 flags = attr->link_create.kprobe_multi.flags;
	u32 nr = attr->link_create.kprobe_multi.cnt;

	if (attr->link_create.flags)
		return bpf_refuse_link_flags(log, attr->link_create.flags);
	if (prog->sleepable)
		return kprobe_multi_refuse(log, KPROBE_MULTI_SLEEPS, "prog_fd %d",
					   attr->link_create.prog_fd);
	if (flags & ~BPF_F_KPROBE_MULTI_RETURN)
		return kprobe_multi_refuse(log, KPROBE_MULTI_FLAGS, "flags 0x%x", flags);
	if (flags && prog->expected_attach_type == BPF_TRACE_KPROBE_SESSION)
		return kprobe_multi_refuse(log, KPROBE_MULTI_SESSION_RETURN, "flags 0x%x",
					   flags);
	if (syms == !!attr->link_create.kprobe_multi.addrs)
		return kprobe_multi_refuse(log, KPROBE_MULTI_WHERE, "%s",
					   syms ? "syms, addrs" : "no syms, no addrs");
	if (!nr)
		return kprobe_multi_refuse(log, KPROBE_MULTI_NONE, "cnt %u", nr);
	if (nr > KPROBE_MULTI_MAX_SITES)
		return kprobe_multi_refuse(log, KPROBE_MULTI_MANY, "cnt %u", nr);
	return 0;
}

/**
 * bpf_kprobe_multi_link_create() - BPF_LINK_CREATE to many kernel functions
 * @attr: what user space asks for
 * @prog: the program, loaded for the attach type of @attr
 * @log: the caller's log, or NULL
 *
 * A name stands for all functions that have it and that ftrace can trace: a link can have more
 * than the caller gave names. Functions of modules are taken only if the kernel itself has none
 * of that name that can be traced.
 *
 * What is wrong with a function in the list is in @log and in tracefs' error_log. Where links
 * that are gone still take much memory, this waits until they are free.
 *
 * Context: process.
 * Return: the descriptor of the link, or
 *
 * * -EINVAL: unknown flags, or BPF_F_KPROBE_MULTI_RETURN of a session; not exactly one of
 *   syms and addrs; no functions; an address that cannot be traced; a program that may sleep;
 *   one that overrides return values where this is not allowed; a module that is not loaded
 *   yet, or goes away
 * * -E2BIG: more than KPROBE_MULTI_MAX_SITES functions, or a name that is too long
 * * -ESRCH: a symbol that does not exist, cannot be traced, or is there twice
 * * -EOPNOTSUPP: a kernel of 32 bits
 * * -EFAULT, -ENOMEM, and -ERESTARTSYS to a task that is killed meanwhile
 */
int bpf_kprobe_multi_link_create(const union bpf_attr *attr, struct bpf_prog *prog,
				 struct bpf_verifier_log *log)
{
	struct kprobe_multi_sites sites = {};
	struct bpf_kprobe_multi_link *link;
	struct bpf_link_primer primer;
	int err;

	if (!IS_ENABLED(CONFIG_64BIT))
		return -EOPNOTSUPP;
	err = kprobe_multi_check(attr, prog, log);
	if (err)
		return err;

	err = wait_event_killable(kprobe_multi_freed, kprobe_multi_may_come());
	if (err)
		return err;

	err = kprobe_multi_get_sites(&sites, attr, log);
	link = err ? NULL : kprobe_multi_link_new(prog, &sites);
	kvfree(sites.sites);
	if (!link)
		return err ?: -ENOMEM;
	link->flags = attr->link_create.kprobe_multi.flags;
	link->has_cookies = attr->link_create.kprobe_multi.cookies;
	bpf_link_init(&link->link, BPF_LINK_TYPE_KPROBE_MULTI, &kprobe_multi_link_ops, prog);

	err = kprobe_multi_hold_modules(link, log);
	if (!err && prog->kprobe_override)
		err = kprobe_multi_check_override(link, log);
	if (!err)
		err = bpf_link_prime(&link->link, &primer);
	if (err) {
		kprobe_multi_dealloc(&link->link);
		return err;
	}

	err = kprobe_multi_register(link);
	if (err) {
		bpf_link_cleanup(&primer);
		return err;
	}
	return bpf_link_settle(&primer);
}
