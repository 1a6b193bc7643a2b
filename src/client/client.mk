# SPDX-License-Identifier: Apache-2.0
# libgantry and the gantry command; included by the top Makefile.  The library is src/client/*.c (with what it needs of base and
# token), the command src/client/cmd/ with its folders, linked with the same objects so that it runs from anywhere.

PKG-client := libcurl libcrypto libxml-2.0 libibverbs libmlx5
$(eval $(call module,client))

# What the command needs beyond the library: the daemon's own readers of its files, for `gantry key`.
PKG-gantry := $(call pkgs,auth) jansson
CMDOBJ := $(patsubst %.c,$(O)/%.o,$(wildcard src/client/cmd/*.c src/client/cmd/*/*.c))
ALLOBJ += $(CMDOBJ)
# Every symbol must be resolved at link time; a sanitizer's own are not.
NODEFS-release := -Wl,-z,defs
CLIENTLIBS := $(shell pkg-config --libs $(PKG-client) 2>/dev/null) -lpthread

$(O)/libgantry.so.0: $(O)/client.a $(O)/token.a $(O)/base.a src/client/libgantry.map
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libgantry.so.0 -Wl,--version-script,src/client/libgantry.map \
		$(NODEFS-$(VARIANT)) -Wl,-z,nodelete -Wl,--as-needed -o $@ -Wl,--whole-archive $(O)/client.a \
		-Wl,--no-whole-archive $(O)/token.a $(O)/base.a $(CLIENTLIBS)

$(O)/libgantry.so: $(O)/libgantry.so.0
	@ln -sf libgantry.so.0 $@

$(O)/gantry: $(CMDOBJ) $(O)/client.a $(call archives,auth)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--as-needed -o $@ $(CMDOBJ) $(O)/client.a \
		-Wl,--start-group $(call archives,auth) -Wl,--end-group $(CLIENTLIBS) $(shell pkg-config --libs $(PKG-gantry)) -lm
