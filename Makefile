# SPDX-License-Identifier: Apache-2.0
# Gantry: one makefile for everything.  `make help` lists the targets.
#
# Objects go to build/<variant>/ so that sanitizers and release never mix.  Changed flags rebuild (the flags file).
# What a folder of src/ may include and link is in src/DEPS; a unit test in tests/unit/<module>/ links that closure.

# Make would try its own rules for every file.  They are taken away here, since -r in MAKEFLAGS would reach the makes of others.
.SUFFIXES:
%: %,v
%: RCS/%,v
%: RCS/%
%: s.%
%: SCCS/s.%

VARIANT ?= release
O := build/$(VARIANT)
V ?= 0
Q := $(if $(filter 0,$(V)),@)
WERROR ?= -Werror
# Make has a CC of its own, cc; one from the environment or the command line is the user's.
ifeq ($(origin CC),default)
CC := gcc
endif
SECS ?= 60
PREFIX ?= /usr
SYSCONFDIR ?= /etc
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
ZSHDIR ?= $(PREFIX)/share/zsh/vendor-completions
PYTHONDIR ?= $(PREFIX)/lib/python3/dist-packages
DOCDIR ?= $(PREFIX)/share/doc/gantry
VERSION := $(shell cat VERSION)

# Backtraces with functions and lines; variables as well take a ninth of the compiler's time. Packages have them, by CFLAGS=-g.
OPT-release := -O2 -g1
OPT-asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
OPT-tsan := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
# Instrumented code confuses gcc's flow analysis; the release build keeps these warnings.  clang does not know them.
NOISE := -Wno-unknown-warning-option -Wno-maybe-uninitialized -Wno-format-truncation -Wno-stringop-overflow
OPT-asan += $(NOISE)
OPT-tsan += $(NOISE)
# The programs of tests/unit, tests/cuobject and tests/fuzz: an optimizing compiler takes longer than most of them run.  OPT_TESTS= compiles them like the rest, with the
# warnings that need the optimizer.
OPT_TESTS ?= -O0
# Programs that only tests run have no debug information in a release build: it takes a tenth of the compiler's time and a third of the linker's.
# DEBUG_TESTS=-g for a debugger.
DEBUG_TESTS ?= $(if $(filter release,$(VARIANT)),-g0)
# The others of them (the simulation, fakes, tools): -O2 takes a third more of the compiler's time, and the simulation is 4 % slower without it.
OPT_FAKES ?= $(if $(filter release,$(VARIANT)),-O1)
OPT-fuzz := -O2 -g -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
ifeq ($(VARIANT),fuzz)
CC := clang
endif
ifeq ($(OPT-$(VARIANT)),)
$(error unknown VARIANT=$(VARIANT); have release asan tsan fuzz)
endif

# CPPFLAGS, CFLAGS and LDFLAGS are the user's, from the command line or the environment: they are added to ours, and come last, so that
# they win.  They are never set here, so the makes below get them as they were given.
ALL_CPPFLAGS = -D_GNU_SOURCE -DGANTRY_VERSION='"$(VERSION)"' -Isrc -I. -MMD -MP $(PKGCFLAGS) $(CPPFLAGS)
ALL_CFLAGS = -std=c17 -pipe $(OPT-$(VARIANT)) -fPIC -fvisibility=default -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wpointer-arith -Wformat=2 -Wno-unused-parameter -Wno-missing-field-initializers $(CFLAGS)
ALL_LDFLAGS = $(filter -fsanitize=%,$(OPT-$(VARIANT))) $(LDFLAGS)
# Programs of tests are linked by gold where there is one: it takes half of the time.
LD_TESTS := $(if $(filter-out fuzz,$(VARIANT)),$(if $(findstring GNU gold,$(shell $(CC) -fuse-ld=gold -Wl,--version 2>/dev/null)),-fuse-ld=gold))
LD_TESTS += $(if $(filter -g0,$(DEBUG_TESTS)),-Xlinker -S)

include src/DEPS
# Where librados is not there, neither is the module; the packages that need it are those of `scripts/deps build`.
ifeq ($(wildcard /usr/include/rados/librados.h),)
MODULES := $(filter-out rados rados_%,$(MODULES))
endif
RADOS := $(if $(filter rados,$(MODULES)),$(O)/store-rados.so)
CFLAGS-src/main/backend.c := -DGANTRY_MODULE_DIR='"$(LIBDIR)/gantry"'

# The transitive closure of DEPS-<module>, without repeats; archives are linked as one group, so order does not matter.
# Each is computed once, and pkg-config is asked once for each set of packages: 300 programs are linked.
closure1 = $(if $(filter undefined,$(origin CLOSURE-$(1))),$(eval CLOSURE-$(1) := $(sort $(1) $(foreach m,$(DEPS-$(1)),$(call closure1,$(m))))))$(CLOSURE-$(1))
closure = $(sort $(foreach m,$(1),$(call closure1,$(m))))
# The folder of a module.
moddir = src/$(subst _,/,$(1))
archives = $(patsubst %,$(O)/%.a,$(call closure,$(1)))
pkgs = $(sort $(foreach m,$(call closure,$(1)),$(PKG-$(m))))
pkgask = $(if $(filter undefined,$(origin LIBS-$(1))),$(eval LIBS-$(1) := $(shell pkg-config --libs $(2) 2>/dev/null)))$(LIBS-$(1))
empty :=
pkglibs = $(if $(call pkgs,$(1)),$(call pkgask,$(subst $(empty) ,+,$(call pkgs,$(1))),$(call pkgs,$(1))))
linkmod = -Wl,--start-group $(call archives,$(1)) -Wl,--end-group $(call pkglibs,$(1)) -lpthread

PKGALL := $(sort $(foreach m,$(MODULES),$(PKG-$(m))) libcurl)
PKGCFLAGS := $(shell pkg-config --cflags $(PKGALL) 2>/dev/null)

.PHONY: all
all: deps-check $(O)/gantryd $(RADOS) $(O)/gantry $(O)/libgantry.so $(O)/libgantry-server.so softnic cuobject

# The status page lies inside the program.
$(O)/src/admin/html.o: src/admin/page.html docs/runbook.md

# ---- objects -------------------------------------------------------------------------------------------------------
FLAGS := $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS)
$(O)/flags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || echo '$(subst ','\'',$(FLAGS))' > $@
.PHONY: FORCE
FORCE:

TESTOBJ := $(patsubst %.c,$(O)/%.o,$(wildcard tests/unit/*/*.c tests/fake/*.c))
$(O)/flags-tests: FORCE
	@mkdir -p $(@D); echo '$(OPT_FAKES) $(OPT_TESTS) $(DEBUG_TESTS)' | cmp -s - $@ || echo '$(OPT_FAKES) $(OPT_TESTS) $(DEBUG_TESTS)' > $@
$(O)/tests/unit/%.o $(O)/tests/cuobject/%.o $(if $(filter fuzz,$(VARIANT)),,$(O)/tests/fuzz/%.o): OPT-$(VARIANT) += $(OPT_TESTS)
$(O)/tests/%.o $(O)/sim/%.o: OPT-$(VARIANT) += $(OPT_FAKES) $(DEBUG_TESTS)
$(patsubst %,$(O)/%.o,$(basename $(wildcard tests/*/*.c tests/*/*/*.c tests/cuobject/*.cpp))): $(O)/flags-tests

# In a recipe: the folder of the target is made, and what is done is said, without a process for each of the two, of which a build has
# 1,300.
at = $(if $(MADE-$(@D))$(findstring n,$(firstword -$(MAKEFLAGS))),,$(shell mkdir -p $(@D))$(eval MADE-$(@D) := 1))
say = $(call at)$(if $(filter 0,$(V)),$(info $(empty)  $(1) $(2)))
$(O)/%.o: %.c $(O)/flags
	$(Q)$(call say,CC     ,$(VARIANT) $<)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(CFLAGS-$(<)) -c -o $@ $<

define module
OBJ-$(1) := $$(patsubst %.c,$(O)/%.o,$$(wildcard $(call moddir,$(1))/*.c))
$(O)/$(1).a: $$(OBJ-$(1))
	@mkdir -p $$(@D); rm -f $$@
	$$(Q)$(AR) rcs $$@ $$^
ALLOBJ += $$(OBJ-$(1))
endef
$(foreach m,$(MODULES),$(eval $(call module,$(m))))

# ---- programs ------------------------------------------------------------------------------------------------------
$(O)/gantryd: $(call archives,main) src/rados/daemon.list
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--dynamic-list=src/rados/daemon.list -o $@ $(call linkmod,main)

# The store on RADOS: what it needs of the daemon is found there when it is loaded (daemon.list).
RADOSARCHIVES := $(O)/rados.a $(O)/rados_io.a $(O)/rados_use.a
$(O)/store-rados.so: $(RADOSARCHIVES) src/rados/rados.map
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,--version-script=src/rados/rados.map -o $@ -Wl,--whole-archive $(RADOSARCHIVES) \
		-Wl,--no-whole-archive -lrados -lpthread

include src/client/client.mk
include src/server/server.mk
include src/cuobject/cuobject.mk
include src/softnic/softnic.mk
include tests/sim/sim.mk
include bench/bench.mk
include tests/gpu/gpu.mk

# ---- tests: `make check [T=name]` ----------------------------------------------------------------------------------
LIBS_CMOCKA := $(shell pkg-config --libs cmocka 2>/dev/null)
UNITSRC := $(wildcard tests/unit/*/test_*.c)
UNITBIN := $(patsubst tests/unit/%.c,$(O)/unit/%,$(UNITSRC))
unitdir = $(firstword $(subst /, ,$(patsubst tests/unit/%,%,$(1))))
# A folder that is named after no module, as set_disk, has what NEEDS- says.
unitmods = $(filter $(MODULES) client,$(call unitdir,$(1))) $(NEEDS-$(call unitdir,$(1))) $(NEEDS-$(patsubst tests/unit/%.c,%,$(1))) \
	$(if $(filter mem_store,$(LINK-$(patsubst tests/unit/%.c,%,$(1)))),model)
# Fakes (tests/fake/*.c) are linked ahead of the archives: tests/unit/<module>/fakes.mk says LINK-<module>/test_x := fake_chan,
# and NEEDS-<module>/test_x := extent, or NEEDS-<module> := ring, for modules beyond the closure of its own; mem_store adds model.
-include $(wildcard tests/unit/*/fakes.mk)
# A fake in several files: fake_chan.c and fake_chan_*.c.  With a folder, core/rig, it is what programs share: tests/unit/core/rig.c.
fakes = $(foreach f,$(LINK-$(patsubst $(O)/unit/%,%,$(1))),$(patsubst %.c,$(O)/%.o,$(if $(findstring /,$(f)),tests/unit/$(f).c,tests/fake/$(f).c $(wildcard tests/fake/$(f)_*.c))))
$(foreach s,$(UNITSRC),$(eval $(patsubst tests/unit/%.c,$(O)/unit/%,$(s)): $(patsubst %.c,$(O)/%.o,$(s)) $(call archives,$(call unitmods,$(s)))))
$(foreach b,$(UNITBIN),$(eval $(b): $(call fakes,$(b))))
$(UNITBIN): $(O)/unit/%: $(O)/tests/unit/%.o $(O)/tests/fake/memory_equal.o
	$(Q)$(call say,LINK   ,$@)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -Wl,--wrap=_assert_memory_equal -o $@ $(filter %.o,$^) $(call linkmod,$(call unitmods,tests/unit/$*.c)) $(LIBS_CMOCKA)
ALLOBJ += $(TESTOBJ)

FUZZSRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZNAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(FUZZSRC))
fuzzmod = $(lastword $(sort $(foreach m,$(MODULES) client,$(if $(filter $(m)_%,$(1)),$(m)))))
# fuzz_<module>_<what>.c: replayed without clang in `make check`, run by libFuzzer in `make fuzz`.
$(foreach n,$(FUZZNAMES),$(eval $(O)/fuzz/$(n): $(O)/tests/fuzz/fuzz_$(n).o $(call archives,$(call fuzzmod,$(n)))))
$(patsubst %,$(O)/fuzz/%,$(FUZZNAMES)): $(O)/fuzz/%: $(if $(filter fuzz,$(VARIANT)),,$(O)/tests/fuzz/replay.o)
	$(Q)$(call say,LINK   ,$@)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) -o $@ $(filter %.o,$^) $(call linkmod,$(call fuzzmod,$*))
ALLOBJ += $(patsubst %.c,$(O)/%.o,$(FUZZSRC)) $(O)/tests/fuzz/replay.o

# Helpers of the system tests: tests/tools/<name>.c, linked with the parts in tests/tools/*/ and what DEPS-tools names.
TOOLSRC := $(wildcard tests/tools/*.c)
TOOLBIN := $(patsubst tests/tools/%.c,$(O)/tools/%,$(filter-out tests/tools/curl.c,$(TOOLSRC)))
TOOLLIB := $(patsubst %.c,$(O)/%.o,$(wildcard tests/tools/*/*.c))
$(O)/tools.a: $(TOOLLIB)
	@mkdir -p $(@D); rm -f $@
	$(Q)$(AR) rcs $@ $^
$(TOOLBIN): $(O)/tools/%: $(O)/tests/tools/%.o $(call archives,tools)
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $< $(call linkmod,tools) $(shell pkg-config --libs libibverbs libmlx5 libcrypto)
# Static, for a short start, and so never sanitized.
$(O)/tools/curl: tests/tools/curl.c $(O)/flags $(O)/flags-tests
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_CPPFLAGS) -MT $@ -MF $@.d $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) $(DEBUG_TESTS) -static -o $@ $<
-include $(O)/tools/curl.d
ALLOBJ += $(patsubst %,$(O)/tests/%.o,$(TOOLBIN:$(O)/%=%)) $(TOOLLIB)

include tests/nbd/nbd.mk

.PHONY: testbins toolbins check check-of check-unit check-system check-threads check-realistic check-copies check-rc check-long check-mutation check-hostile check-ui check-clients asan tsan fuzz fuzz-merge lint demo help install clean format hooks deps deps-check tags
# toolbins: what system tests are made with, and the unit programs that they start.
toolbins: $(TOOLBIN) $(O)/tools/curl $(STANDINS) $(SOFTNIC_TESTS) $(NBDPLUGIN) $(SERVER_TESTS) $(CUOBJ_TESTS) $(O)/bench/store $(O)/bench/load $(O)/bench/scale $(patsubst %,$(O)/unit/%,$(file <tests/unit/on-nic))
# bench/ uses the sources of tests/ and src/, so that all of it is built with them.
testbins: $(UNITBIN) $(patsubst %,$(O)/fuzz/%,$(FUZZNAMES)) $(SIM_TESTS) toolbins $(if $(filter release,$(VARIANT)),$(BENCHBIN))

deps-check:
	@scripts/deps --check build || { echo "run scripts/deps build (as root) to install them" >&2; exit 1; }
deps:
	@scripts/deps build test

check:
	@scripts/deps build test lint clients
	@scripts/check $(if $(T),T='$(T)')
comma := ,
check-long:
	@scripts/deps build test lint $(if $(filter disk,$(subst $(comma), ,$(SKIP))),,disk)
	@SECS='$(SECS)' scripts/check --long $(if $(T),T='$(T)')
# Mutants of the store, each of which must be found; PART=1/3: the second third of them, T=names.
check-mutation:
	@scripts/deps build test
	@nice tests/mutation/run $(if $(PART),--part $(PART)) $(T)
# Clients that mean harm, by the hundred and the thousand; one test at a time, as they ask for all of a machine.
check-hostile:
	@scripts/deps build test
	@$(MAKE) --no-print-directory all testbins
	@JOBS=1 scripts/run-tests --variant $(VARIANT) --hostile $(T)
# The clients that Debian and npm package (aws, boto3, s3cmd, rclone, curl, MariaDB, the JavaScript SDKs, Bun), and a page in Chromium.
# QUICK=1: with small files.
check-clients:
	@scripts/deps build test clients mariadb torch ui
	@$(MAKE) --no-print-directory all testbins
	@T='$(T)' tests/clients/run.sh
# The store on RADOS, on a cluster of its own that lies in one directory.
RADOSTESTS := $(patsubst tests/rados/%.c,$(O)/rados/%,$(wildcard tests/rados/test_*.c))
RADOSTESTS_WITH := $(patsubst %.c,$(O)/%.o,$(wildcard tests/fake/store_contract*.c tests/fake/diff*.c tests/fake/mem_store*.c))
$(RADOSTESTS): $(O)/rados/%: $(O)/tests/rados/%.o $(RADOSTESTS_WITH) $(call archives,rados)
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call linkmod,rados) -lrados $(LIBS_CMOCKA)
ALLOBJ += $(patsubst %.c,$(O)/%.o,$(wildcard tests/rados/*.c))
# The module once more, with the steps at which tests end it (src/rados/io/fault.h), where two parts are enough for a map, and fewer
# ids are promised ahead (many gateways end, and all of theirs are looked at); and a daemon beside it, which loads this one.
FAULTOBJ := $(patsubst src/%.c,$(O)/faults/src/%.o,$(wildcard src/rados/*.c src/rados/*/*.c))
CFLAGS-tests/rados/fault_point.c := -DRADOS_FAULTS
$(O)/faults/src/%.o: src/%.c $(O)/flags
	@mkdir -p $(@D)
	@$(if $(filter 0,$(V)),echo "  CC      $(VARIANT) $< (faults)")
	$(Q)$(CC) $(ALL_CPPFLAGS) -DRADOS_FAULTS -DREC_PARTS_BYTES_MAX=100 -DID_AHEAD=512u $(ALL_CFLAGS) -c -o $@ $<
$(O)/faults/store-rados.so: $(FAULTOBJ) $(O)/tests/rados/fault_point.o src/rados/rados.map
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,--version-script=src/rados/rados.map -o $@ $(filter %.o,$^) -lrados -lpthread
$(O)/faults/gantryd: $(O)/gantryd
	@mkdir -p $(@D); cp $< $@
ALLOBJ += $(FAULTOBJ)
.PHONY: check-rados radostests
radostests: $(RADOSTESTS) $(if $(RADOS),$(O)/faults/store-rados.so $(O)/faults/gantryd)
check-rados:
	@scripts/deps build test clients rados
	@$(MAKE) --no-print-directory all testbins radostests
	@$(MAKE) --no-print-directory VARIANT=asan build/asan/rados/test_contract build/asan/rados/test_ahead
	@T='$(T)' tests/rados/run.sh
# More of it, which takes an hour: histories of ten minutes, clients, the rest of the system tests.
.PHONY: check-rados-long
check-rados-long:
	@scripts/deps build test clients mariadb torch rados
	@$(MAKE) --no-print-directory all testbins radostests
	@T='$(T)' LONG=1 tests/rados/run.sh
# The interface of cuObject: facts and decisions, headers, what is installed; also with the sanitizers.
.PHONY: check-cuobject
check-cuobject:
	@scripts/deps build test
	@$(MAKE) --no-print-directory all testbins
	@for v in asan tsan; do $(MAKE) --no-print-directory VARIANT=$$v build/$$v/gantryd softnic cuobject cuobject-tests server-tests build/$$v/softnicctl || exit 1; done
	@T='$(T)' tests/cuobject/run.sh
# The status page in headless Chromium.  SHOTS=DIR keeps the screenshots.
check-ui:
	@scripts/deps build test ui
	@$(MAKE) --no-print-directory all testbins
	@tests/ui/run.sh
# System tests alone; variables of the environment reach the daemon and its software NIC (tests/system/lib.sh), so this is also
# how a second pass is made: `SOFTNIC_EXEC=inline make check-system`.
check-system:
	@scripts/deps build test clients
	@$(MAKE) --no-print-directory all testbins
	@scripts/run-tests --variant $(VARIANT) --system $(T)
# Unit and system tests where io_uring is forbidden, so that threads do its work (src/ring/threads.c).
check-threads:
	@scripts/deps build test clients
	@$(MAKE) --no-print-directory all testbins
	@$(O)/tools/no_uring scripts/run-tests --variant $(VARIANT) --unit --system $(T)
# System tests on a fabric as networks are: commands take firmware's time, absent neighbours a second, subnets are subnets (softnicctl(8)).
check-realistic:
	@scripts/deps build test clients
	@$(MAKE) --no-print-directory all testbins
	@SOFTNIC_PROFILE=realistic scripts/run-tests --variant $(VARIANT) --system $(T)
# System tests on three disks, where buckets have two copies unless a test says otherwise (tests/system/lib.sh).
check-copies:
	@scripts/deps build test clients
	@$(MAKE) --no-print-directory all testbins
	@COPIES=2 scripts/run-tests --variant $(VARIANT) --system $(T)
# System and hostile tests with connections of RC in the place of DC, on an adapter that has no DC: those of tests/over-rc.
check-rc:
	@scripts/deps build test clients
	@$(MAKE) --no-print-directory all testbins
	@TRANSPORT=rc SOFTNIC_DC=0 scripts/run-tests --variant $(VARIANT) --system --hostile --exact $$(grep -v '^#' tests/over-rc | grep -F '$(T)')
# Unit tests alone, all or those with one of the words of T in their name; it builds no more than these and installs nothing.
chosen = $(if $(T),$(foreach b,$(UNITBIN),$(if $(strip $(foreach w,$(T),$(findstring $(w),$(b:$(O)/%=%)))),$(b))),$(UNITBIN))
check-unit: deps-check $(chosen)
	@scripts/run-tests --variant $(VARIANT) --unit $(T)
# The tests that matter for a file or folder of src, by tests/map.
check-of: deps-check
	@VARIANT=$(VARIANT) scripts/check-of '$(F)'
# make t/MODULE/test_x: that program, built and run in the foreground.
t/%: $(O)/unit/% FORCE
	@scripts/run-unit --variant $(VARIANT) $*
$(patsubst %,t/%,$(file <tests/unit/on-nic)): softnic
# Another variant of the units, the corpora and a smoke of the daemon, and no more built than these want.
.PHONY: variantbins
variantbins: $(UNITBIN) $(patsubst %,$(O)/fuzz/%,$(FUZZNAMES)) $(TOOLBIN) $(O)/tools/curl $(O)/gantryd $(O)/gantry softnic
asan tsan:
	@scripts/deps build test
	@$(MAKE) --no-print-directory -s -j$$(($$(nproc) + 1)) VARIANT=$@ variantbins
	@scripts/run-tests --variant $@ --unit --fuzz --smoke $(T)
fuzz:
	@scripts/deps build fuzz
	@$(MAKE) --no-print-directory VARIANT=fuzz $(if $(F),build/fuzz/fuzz/$(F),$(patsubst %,build/fuzz/fuzz/%,$(FUZZNAMES)))
	@scripts/fuzz '$(SECS)' $(if $(F),$(F),$(FUZZNAMES))
fuzz-merge:
	@scripts/fuzz-merge $(if $(F),$(F),$(FUZZNAMES))
# Packages, and what installs and runs them: in a chroot made by debootstrap, and in a virtual machine with systemd.
deb:
	@scripts/deps build deb
	@scripts/deb
check-deb: deb
	@scripts/deps chroot rpm
	@tests/vm/deb.sh build/deb
check-vm: deb
	@scripts/deps chroot vm
	@$(MAKE) --no-print-directory -s build/release/tools/rawclient
	@tests/vm/run.sh build/deb $(T)
# The image, its seccomp profile and the manifests of packaging/, as containers run them.
check-containers: deb
	@scripts/deps build test chroot containers
	@$(MAKE) --no-print-directory all testbins
	@tests/containers/run.sh build/deb
# README's first server, and parts of docs/recipes.md and docs/python.md, in a fresh Debian, word for word, with their times.
check-newcomer: deb
	@scripts/deps chroot
	@tests/newcomer/run.sh build/deb
lint:
	@scripts/deps lint
	@scripts/lint
demo:
	@scripts/deps build
	@$(MAKE) --no-print-directory all
	@scripts/demo
format:
	clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp')
# Has git check commit messages, in this clone.
hooks:
	git config core.hooksPath scripts/hooks
tags:
	ctags -R src tests
compile_commands.json: clean
	bear -- $(MAKE) all testbins
clean:
	rm -rf build/$(VARIANT)

# $(call installman,page...)
installman = for m in $(1); do install -D -m 644 man/$$m $(DESTDIR)$(MANDIR)/man$${m\#\#*.}/$$m || exit 1; done
.PHONY: install-client install-lib install-dev install-server install-server-dev install-rados install-python install-softnic deb check-deb check-vm check-containers check-newcomer
install: all install-client install-lib install-dev install-server install-server-dev install-rados install-cuobject install-cuobject-dev
	install -D -m 755 $(O)/gantryd $(DESTDIR)$(PREFIX)/sbin/gantryd
	install -D -m 644 conf/gantryd.yaml $(DESTDIR)$(SYSCONFDIR)/gantry/gantryd.yaml
	install -d $(DESTDIR)$(SYSCONFDIR)/gantry/conf.d
	install -D -m 644 systemd/gantryd.service $(DESTDIR)$(UNITDIR)/gantryd.service
	install -D -m 644 systemd/gantryd.socket $(DESTDIR)$(UNITDIR)/gantryd.socket
	install -D -m 644 systemd/gantry.catalog $(DESTDIR)$(PREFIX)/lib/systemd/catalog/gantry.catalog
	install -D -m 644 systemd/gantry.sysusers $(DESTDIR)$(SYSUSERSDIR)/gantry.conf
	install -D -m 644 systemd/gantry.tmpfiles $(DESTDIR)$(TMPFILESDIR)/gantry.conf
	$(call installman,gantryd.8 gantryd.yaml.5 $(filter-out gantry-cuobject.7,$(notdir $(wildcard man/*.7))))
	for f in $$(cd share 2>/dev/null && find . -type f ! -path './completions/*'); do install -D -m 644 share/$$f $(DESTDIR)$(PREFIX)/share/gantry/$$f || exit 1; done
	for f in README.md CHANGELOG.md $(wildcard docs/*.md docs/*.png docs/*.svg docs/images/*.svg); do install -D -m 644 $$f $(DESTDIR)$(DOCDIR)/$${f#docs/} || exit 1; done
install-client: all
	install -D -m 755 $(O)/gantry $(DESTDIR)$(PREFIX)/bin/gantry
	$(call installman,gantry.1)
	for f in $(notdir $(wildcard share/completions/*.bash)); do install -D -m 644 share/completions/$$f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/$${f%.bash} || exit 1; done
	for f in $(notdir $(wildcard share/completions/_*)); do install -D -m 644 share/completions/$$f $(DESTDIR)$(ZSHDIR)/$$f || exit 1; done
install-lib: all
	install -D -m 644 $(O)/libgantry.so.0 $(DESTDIR)$(LIBDIR)/libgantry.so.0
install-dev: all
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	ln -sf libgantry.so.0 $(DESTDIR)$(LIBDIR)/libgantry.so
	install -D -m 644 src/client/gantry.h $(DESTDIR)$(PREFIX)/include/gantry.h
	sed -e 's|@PREFIX@|$(PREFIX)|;s|@LIBDIR@|$(LIBDIR)|;s|@VERSION@|$(VERSION)|' src/client/libgantry.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/libgantry.pc
	$(call installman,libgantry.3)
install-server: all
	install -D -m 644 $(O)/libgantry-server.so.0 $(DESTDIR)$(LIBDIR)/libgantry-server.so.0
install-server-dev: all
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	ln -sf libgantry-server.so.0 $(DESTDIR)$(LIBDIR)/libgantry-server.so
	install -D -m 644 src/server/gantry_server.h $(DESTDIR)$(PREFIX)/include/gantry_server.h
	sed -e 's|@PREFIX@|$(PREFIX)|;s|@LIBDIR@|$(LIBDIR)|;s|@VERSION@|$(VERSION)|' src/server/libgantry-server.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/libgantry-server.pc
	$(call installman,libgantry-server.3)
# The Python module is text, so it has no part in `make all`; rpm distributions have another PYTHONDIR.
install-python:
	for f in python/gantry/*.py python/gantry/py.typed; do install -D -m 644 $$f $(DESTDIR)$(PYTHONDIR)/$${f#python/} || exit 1; done
# A part of `make install` where librados is.
install-rados: all
	$(if $(RADOS),install -D -m 644 $(RADOS) $(DESTDIR)$(LIBDIR)/gantry/store-rados.so)
	$(if $(RADOS),install -D -m 644 systemd/gantryd-rados.conf $(DESTDIR)$(UNITDIR)/gantryd.service.d/rados.conf)
	$(if $(RADOS),$(call installman,gantryd-rados.8))
# Test equipment, and not part of `make install`: nothing finds these libraries but through with-softnic.
install-softnic: all
	for l in libibverbs.so.1 libmlx5.so.1 cm/librdmacm.so.1; do install -D -m 644 $(O)/softnic/$$l $(DESTDIR)$(LIBDIR)/gantry/softnic/$$l || exit 1; done
	install -D -m 755 $(O)/softnicctl $(DESTDIR)$(PREFIX)/bin/softnicctl
	sed 's|^installed=.*|installed=$(LIBDIR)/gantry|' scripts/with-softnic > $(DESTDIR)$(PREFIX)/bin/with-softnic
	chmod 755 $(DESTDIR)$(PREFIX)/bin/with-softnic
	$(call installman,softnicctl.8)

help:
	@echo 'make                build gantryd, gantry, libgantry and the software NIC into build/release/'
	@echo 'make demo           the demonstration: real files through RDMA tokens on the software NIC'
	@echo 'make check [T=name] build and run the tests of the first tier (installs what is missing)'
	@echo 'make check-of F=src/...    the tests that matter for that file or folder (tests/map); installs nothing'
	@echo 'make check-unit [T=name]   the unit tests alone, likewise with VARIANT=; installs nothing'
	@echo 'make check-system [T=name] the system tests alone; SOFTNIC_EXEC=inline, GANTRY_...= reach the daemon'
	@echo 'make t/MODULE/test_x       builds and runs one unit program, tests/unit/MODULE/test_x.c'
	@echo 'make check-long     the long sweeps, SECS= seconds each'
	@echo 'make check-threads [T=name] unit and system tests where io_uring is forbidden, as in a container'
	@echo 'make check-rados [T=words] the store on a RADOS cluster of its own: contract, system tests, several gateways'
	@echo 'make check-rados-long   ... histories of ten minutes, the clients, the rest of the system tests'
	@echo 'make bench-rados [F=figure] the store on RADOS in turns with librados alone'
	@echo 'make check-cuobject [T=word] the interface of cuObject, with the sanitizers too'
	@echo 'make check-copies [T=name] system tests on three disks, with two copies of each object'
	@echo 'make check-rc [T=name] system and hostile tests with connections of RC in the place of DC'
	@echo 'make check-realistic [T=name] system tests on a network with subnets, firmware that takes its time, absent neighbours'
	@echo 'make check-mutation [PART=1/3] a hundred changes of the store, of which each must be found'
	@echo 'make check-hostile [T=name] clients that mean harm, by the hundred and the thousand'
	@echo 'make check-clients [T=name] packaged clients against the daemon, and docs/recipes.md word for word (installs them)'
	@echo 'make check-ui       the status page in headless Chromium (installs it)'
	@echo 'make asan | tsan    build that variant and run its tests'
	@echo 'make fuzz [F=name] [SECS=60] [JOBS=1]   libFuzzer over the parsers; fuzz-merge keeps what reached new code'
	@echo 'make lint           format, structure, comments, headers, scripts, manual pages'
	@echo 'make bench [F=name]  the figures of docs/benchmarks.md, against raw disk, nginx and verbs'
	@echo 'make bench-against REV=revision [F=name] [ROUNDS=7]   the same figures in turns with another revision: is one worse?'
	@echo 'make bench-pinned [F=name] [ROUNDS=7]   the same with the revision in bench/PINNED; MOVE=1 replaces it when no figure has lost'
	@echo 'make bench-numbers [URL=http://HOST:PORT/BUCKET]   gantry bench by RDMA and HTTP in turns, as a table; VERIFY=1'
	@echo 'make bench-starts REV=revision [N=objects] [MB_S=300]   how long a start takes on a disk that reads so fast, against another revision'
	@echo 'make bench-scale      1, 2, 4, 8 cores compared with one; make bench-cores [GBIT=400]: the number of cores that fill a port'
	@echo 'make bench-growth [F=curve] [N=objects]   how cost grows with objects, size, connections, fill level; bench-plot draws it'
	@echo 'make install DESTDIR= PREFIX=/usr; install-python, install-softnic for these'
	@echo 'make deb            Debian packages, into build/deb'
	@echo 'make check-deb      installs, runs and purges them in a fresh chroot (root, network)'
	@echo 'make check-containers  the image is built and run, its manifests are checked (root, network)'
	@echo 'make check-newcomer follows the README and other pages word for word in a fresh chroot, with times (root, network)'
	@echo 'make check-vm       runs them in a virtual machine: systemd, Linux 6.1, Soft-RoCE (root, network)'
	@echo 'make deps | clean | format | hooks | tags | compile_commands.json'
	@echo 'Variables: V=1 shows commands, WERROR= makes warnings harmless, VARIANT=release|asan|tsan|fuzz,'
	@echo '           CC=gcc|clang, and CPPFLAGS=, CFLAGS=, LDFLAGS= that are added to ours'

# The compiler makes these. Without this rule make looks for one for each of them, for 0.4 s.
$(ALLOBJ:.o=.d): ;
-include $(ALLOBJ:.o=.d)
