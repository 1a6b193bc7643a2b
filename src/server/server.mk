# SPDX-License-Identifier: Apache-2.0
# libgantry-server: src/server/*.c with what it needs of rdma, token and base; included by the top Makefile.  Nothing of it reads
# YAML, writes to the journal or serves HTTP.
SERVERLIBS := $(shell pkg-config --libs $(PKG-rdma) 2>/dev/null) -lpthread

$(O)/libgantry-server.so.0: $(O)/server.a $(O)/rdma.a $(O)/token.a $(O)/conf.a $(O)/base.a src/server/libgantry-server.map
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libgantry-server.so.0 -Wl,--version-script,src/server/libgantry-server.map \
		$(NODEFS-$(VARIANT)) -Wl,-z,nodelete -Wl,--as-needed -o $@ -Wl,--whole-archive $(O)/server.a \
		-Wl,--no-whole-archive -Wl,--start-group $(O)/rdma.a $(O)/token.a $(O)/conf.a $(O)/base.a -Wl,--end-group $(SERVERLIBS)

$(O)/libgantry-server.so: $(O)/libgantry-server.so.0
	@ln -sf libgantry-server.so.0 $@

# A server and a client, by the two public headers and the two libraries alone; run by tests/system/server.sh.
SERVER_TESTS := $(O)/server-tests/pair
.PHONY: server-tests
server-tests: $(SERVER_TESTS) $(O)/unit/server/test_channel $(O)/unit/server/test_repair
$(O)/tests/server/pair.o: ALL_CPPFLAGS += -Isrc/client -Isrc/server
$(O)/server-tests/pair: $(O)/tests/server/pair.o $(O)/libgantry.so $(O)/libgantry-server.so
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $< -L$(O) -lgantry-server -lgantry
ALLOBJ += $(O)/tests/server/pair.o
