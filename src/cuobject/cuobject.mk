# SPDX-License-Identifier: Apache-2.0
# libcuobjclient and libcuobjserver: the C++ shape of cuObject over libgantry and libgantry-server; included by the top
# Makefile.  They are all that needs a C++ compiler: without one they are not built, which `make` says, and not installed.
# $(O)/cuobject/ looks as the private folder of an installation does.

# Of the family of CC, for a cross compiler and for the sanitizers.
ifeq ($(origin CXX),default)
CXX := $(if $(filter %gcc %clang,$(firstword $(CC))),$(patsubst %clang,%clang++,$(patsubst %gcc,%g++,$(CC))),g++)
endif
ifneq ($(shell command -v $(firstword $(CXX)) 2>/dev/null),)
HAS_CXX := 1
endif
CUOBJ := $(O)/cuobject
CUOBJ_SRC := $(wildcard src/cuobject/*.cpp)
CUOBJ_OBJ := $(CUOBJ_SRC:%.cpp=$(O)/%.o)
CUOBJ_HEADERS := $(wildcard src/cuobject/*.h)
CUOBJ_LEVELS := 13.1 13.2 13.3
CUOBJ_PC := $(CUOBJ_LEVELS:%=$(CUOBJ)/pkgconfig/cuobjclient-%.pc) $(CUOBJ)/pkgconfig/cuobjserver.pc
ALL_CXXFLAGS = -std=c++11 $(OPT-$(VARIANT)) -fPIC -Wall -Wextra $(WERROR) -Wshadow -Wno-unused-parameter $(CXXFLAGS)
ifneq ($(HAS_CXX),)
ALLOBJ += $(CUOBJ_OBJ)
endif

$(O)/cxxflags: FORCE
	@mkdir -p $(@D); echo '$(subst ','\'',$(CXX) $(ALL_CPPFLAGS) $(ALL_CXXFLAGS) $(ALL_LDFLAGS))' | cmp -s - $@ || \
		echo '$(subst ','\'',$(CXX) $(ALL_CPPFLAGS) $(ALL_CXXFLAGS) $(ALL_LDFLAGS))' > $@
$(O)/%.o: %.cpp $(O)/cxxflags
	@mkdir -p $(@D)
	@$(if $(filter 0,$(V)),echo "  CXX     $(VARIANT) $<")
	$(Q)$(CXX) $(ALL_CPPFLAGS) $(ALL_CXXFLAGS) -c -o $@ $<

CUOBJ_CLIENT := $(O)/src/cuobject/client.o $(O)/src/cuobject/telemetry.o
$(CUOBJ)/libcuobjclient.so.1: $(CUOBJ_CLIENT) src/cuobject/libcuobjclient.map $(O)/libgantry.so
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -shared -Wl,-soname,libcuobjclient.so.1 -Wl,--version-script,src/cuobject/libcuobjclient.map \
		$(NODEFS-$(VARIANT)) -Wl,-z,nodelete -Wl,--as-needed -o $@ $(CUOBJ_CLIENT) $(O)/libgantry.so.0 -lpthread
	@ln -sf libcuobjclient.so.1 $(CUOBJ)/libcuobjclient.so
CUOBJ_SERVER := $(patsubst %,$(O)/src/cuobject/%.o,server server_memory server_ops telemetry)
$(CUOBJ)/libcuobjserver.so.1: $(CUOBJ_SERVER) src/cuobject/libcuobjserver.map $(O)/libgantry-server.so
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -shared -Wl,-soname,libcuobjserver.so.1 -Wl,--version-script,src/cuobject/libcuobjserver.map \
		$(NODEFS-$(VARIANT)) -Wl,-z,nodelete -Wl,--as-needed -o $@ $(CUOBJ_SERVER) $(O)/libgantry-server.so.0 -lpthread
	@ln -sf libcuobjserver.so.1 $(CUOBJ)/libcuobjserver.so
# Programs name -lcufile and need nothing of it here.
$(CUOBJ)/libcufile.a:
	@mkdir -p $(@D); rm -f $@
	$(Q)$(AR) rcs $@
# $(call cuobjpc,libdir,includedir,source): a file of pkg-config.
cuobjpc = sed -e 's|@LIBDIR@|$(1)|;s|@INCLUDEDIR@|$(2)|;s|@VERSION@|$(VERSION)|' $(3)
$(filter %/cuobjserver.pc,$(CUOBJ_PC)): src/cuobject/cuobjserver.pc.in
$(filter-out %/cuobjserver.pc,$(CUOBJ_PC)): src/cuobject/cuobjclient.pc.in
$(CUOBJ_PC):
	@mkdir -p $(@D)
	$(Q)$(call cuobjpc,$(CURDIR)/$(CUOBJ),$(CURDIR)/src/cuobject,$<) > $@

.PHONY: cuobject install-cuobject install-cuobject-dev
ifneq ($(HAS_CXX),)
cuobject: $(CUOBJ)/libcuobjclient.so.1 $(CUOBJ)/libcuobjserver.so.1 $(CUOBJ)/libcufile.a $(CUOBJ_PC)
install-cuobject: all
	for l in client server; do install -D -m 644 $(CUOBJ)/libcuobj$$l.so.1 $(DESTDIR)$(LIBDIR)/gantry/cuobject/libcuobj$$l.so.1 || exit 1; done
install-cuobject-dev: all
	install -d $(DESTDIR)$(LIBDIR)/gantry/cuobject/pkgconfig $(DESTDIR)$(LIBDIR)/pkgconfig
	for h in $(CUOBJ_HEADERS); do install -D -m 644 $$h $(DESTDIR)$(PREFIX)/include/gantry/cuobject/$${h##*/} || exit 1; done
	for l in client server; do ln -sf libcuobj$$l.so.1 $(DESTDIR)$(LIBDIR)/gantry/cuobject/libcuobj$$l.so || exit 1; done
	install -m 644 $(CUOBJ)/libcufile.a $(DESTDIR)$(LIBDIR)/gantry/cuobject/libcufile.a
	for f in $(CUOBJ_LEVELS:%=gantry/cuobject/pkgconfig/cuobjclient-%) pkgconfig/gantry-cuobjclient; do \
		$(call cuobjpc,$(LIBDIR)/gantry/cuobject,$(PREFIX)/include/gantry/cuobject,src/cuobject/cuobjclient.pc.in) \
		> $(DESTDIR)$(LIBDIR)/$$f.pc || exit 1; done
	for f in gantry/cuobject/pkgconfig/cuobjserver pkgconfig/gantry-cuobjserver; do \
		$(call cuobjpc,$(LIBDIR)/gantry/cuobject,$(PREFIX)/include/gantry/cuobject,src/cuobject/cuobjserver.pc.in) \
		> $(DESTDIR)$(LIBDIR)/$$f.pc || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/bin
	sed 's|^installed=.*|installed=$(LIBDIR)/gantry|;s|^headers=.*|headers=$(PREFIX)/include/gantry/cuobject|' \
		scripts/with-gantry-cuobject > $(DESTDIR)$(PREFIX)/bin/with-gantry-cuobject
	chmod 755 $(DESTDIR)$(PREFIX)/bin/with-gantry-cuobject
	$(call installman,gantry-cuobject.7)
else
cuobject:
	@echo '  SKIP    libcuobjclient, libcuobjserver: there is no $(CXX), and so no cuObject for C++ programs (apt install g++)'
install-cuobject install-cuobject-dev:
endif

# Its tests: tests/cuobject/*.cpp, each a program, run by tests/cuobject/run.sh and tests/system/cuobject.sh.
CUOBJ_TESTS := $(if $(HAS_CXX),$(patsubst tests/cuobject/%.cpp,$(O)/cuobject-tests/%,$(wildcard tests/cuobject/*.cpp)))
ALLOBJ += $(CUOBJ_TESTS:$(O)/cuobject-tests/%=$(O)/tests/cuobject/%.o)
.PHONY: cuobject-tests
cuobject-tests: $(CUOBJ_TESTS)
$(CUOBJ_TESTS:$(O)/cuobject-tests/%=$(O)/tests/cuobject/%.o): ALL_CPPFLAGS += -Isrc/cuobject
$(filter-out %/names,$(CUOBJ_TESTS)): $(O)/cuobject-tests/%: $(O)/tests/cuobject/%.o $(CUOBJ)/libcuobjclient.so.1 $(CUOBJ)/libcuobjserver.so.1
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $< -L$(CUOBJ) -Wl,--as-needed -lcuobjclient -lcuobjserver -Wl,-rpath-link,$(O) -lpthread -ldl
# It knows names alone.
$(filter %/names,$(CUOBJ_TESTS)): $(O)/tests/cuobject/names.o | cuobject
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CXX) $(ALL_LDFLAGS) -o $@ $< -ldl
