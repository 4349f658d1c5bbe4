# Each target is one script in scripts/, or in the room there that has its name; its first lines say what it does.
SAMPLE ?= tracex2
# as it was typed: quotes and dollars belong to the guest's shell
override CMD := $(value CMD)
export CMD

help:
	@echo 'make run [SAMPLE=$(SAMPLE)]  from nothing to a booted kernel with a sample: dropmon, fsynclat, lostcat, openslow, tcpretrans,'
	@echo '                           tracex1, tracex2, tracex3, tracex4'
	@echo 'make test                  all tests; the last line is "N passed, N failed"'
	@echo 'make test TESTS="link_test race_test"  only these programs of the selftests [KERNEL=debug]; [TIMES=10] each so often'
	@echo 'make shell [CMD=...]       a prompt in the booted kernel (or one command), with bcc, bpftrace, bpftool, strace'
	@echo 'make new NAME=fsyncslow [DIR=path]  a tool to start from, in ./fsyncslow: it measures a function, shows slow calls and losses'
	@echo 'make bench [PROBES="10 200 1000"]  what events with BPF programs cost, against stock: a table of instructions, a chart;'
	@echo '                           [PAIR=retpoline|preempt] of kernels with that, [ACCEL=kvm] real time beside it; [CPUS=4] hit together'
	@echo 'make clients [KERNEL=series] [SUITES="bpftool libbpf perf bpftrace bcc"]  the tools that people have, unmodified; bcc takes a while'
	@echo 'make promises              what README.md promises: make apply, the tutorial, the quick clients, the cost of events'
	@echo 'make mutants [NAMES=...] [FRAGMENT=debug]  does a test see it when a line is wrong? For each in scripts/mutants/spec, or those named'
	@echo 'make soak [ROUNDS=2]       for a night: all tests on all variants of the kernel, in random orders, and all that is too long for make'
	@echo '                           test; [PARTS="tests own compile mutants patches image deb"]'
	@echo 'make own-tests             the kernel'"'"'s own tests of what the series changes for everyone; [KERNEL=series-own] [ALL=all]'
	@echo 'make fixes                 does each fix of part 0 mend what it says? Its tests on stock, and on stock with part 0'
	@echo 'make report                who passes what: selftests, the kernel'"'"'s own tests and the tools on stock, stock with parts A to C, and'
	@echo '                           the series, as a document; takes some two hours, and goes on where it was interrupted'
	@echo 'make apply KDIR=path       put the series on a Linux 6.12 tree of your own [DERIVE=1]; [PART=A-C] what every 6.12 can have'
	@echo 'make patch                 one file for all of the series, one for A to C, for patch -p1 in a released 6.12.N: dist/*.patch.xz'
	@echo 'make image                 an OCI archive for test runners in virtual machines: dist/*.oci.tar'
	@echo 'make deb [CONFIG=debian|local|vm] [PART=A-C]  a kernel with the series, or with A to C alone, for Debian: dist/*.deb'
	@echo 'make tree                  build/linux: the baseline, then one commit a patch; edit and commit there'
	@echo 'make export                build/linux -> series/ and the copies of the files that it adds'
	@echo 'make check [AFRESH=1]      do these agree, is each patch clean [as if nothing were known]'
	@echo 'make bump                  the newest 6.12 in Debian'"'"'s archive: does everything fit it, does it pass? Then baseline/version names it'
	@echo 'make test-list             accept the names of the tests that ran last as the list of those that must run'
	@echo 'make clean                 remove build/ (refuses while a git tree there has work that is not exported)'

run:
	@scripts/run $(SAMPLE)
shell:
	@scripts/shell "$$CMD"
new:
	@cd '$(or $(PWD),.)' && '$(CURDIR)/scripts/new/new' '$(NAME)' '$(DIR)'
bench:
	@scripts/bench/bench $(PROBES)
clients:
	@scripts/clients/clients $(or $(KERNEL),series) $(SUITES)
mutants:
	@scripts/mutants/mutants $(if $(FRAGMENT),-k $(FRAGMENT)) $(NAMES)
soak:
	@scripts/soak $(ROUNDS)
fixes:
	@scripts/own-tests/fixes
own-tests:
	@scripts/own-tests/own-tests $(or $(KERNEL),series-own) $(ALL)
apply:
	@scripts/apply '$(KDIR)' $(PART)
deb:
	@scripts/deb '$(or $(CONFIG),debian)' '$(PART)'
check:
	@scripts/check/check
test:
	@$(if $(TESTS),scripts/selftests/some $(or $(KERNEL),series),scripts/test)
promises report patch image tree export bump clean test-list:
	@scripts/$@

.PHONY: help run shell new bench clients mutants fixes own-tests soak apply deb test promises report patch image tree export bump \
	check clean test-list
