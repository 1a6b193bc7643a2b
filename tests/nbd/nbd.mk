# SPDX-License-Identifier: Apache-2.0
# The disk of tests/long/: an nbdkit plugin, built where nbdkit-plugin-dev is installed (scripts/deps disk).
# Never sanitized: nbdkit, which loads it, is not.
ifeq ($(shell pkg-config --exists nbdkit 2>/dev/null && echo yes),yes)
NBDPLUGIN := $(O)/nbd/lostwrite.so
$(O)/nbd/%.so: tests/nbd/%.c $(O)/flags
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_CPPFLAGS) $(shell pkg-config --cflags nbdkit) -MT $@ -MF $(@:.so=.d) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -shared -o $@ $<
-include $(NBDPLUGIN:.so=.d)
endif
