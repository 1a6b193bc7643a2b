# SPDX-License-Identifier: Apache-2.0
LINK-rados/test_contract := librados store_contract
LINK-rados/test_gates := librados diff mem_store
LINK-rados/test_format := librados
LINK-rados/test_fsck := librados diff mem_store
LINK-rados/test_keyring := librados
LINK-rados/test_open := librados diff mem_store
LINK-rados/test_sweep := librados diff mem_store
# The store on RADOS once more, with a further field of records.
ifneq ($(RADOS),)
ROWOBJ := $(patsubst src/%.c,$(O)/row/src/%.o,$(wildcard src/rados/*.c src/rados/*/*.c))
$(O)/row/src/%.o: src/%.c $(O)/flags $(O)/flags-tests
	@mkdir -p $(@D)
	@$(if $(filter 0,$(V)),echo "  CC      $(VARIANT) $< (row)")
	$(Q)$(CC) $(ALL_CPPFLAGS) -DRECORD_DEF_MORE='"tests/unit/rados/row.def"' $(ALL_CFLAGS) $(OPT_TESTS) $(DEBUG_TESTS) -c -o $@ $<
$(O)/unit/rados/test_format: $(ROWOBJ)
ALLOBJ += $(ROWOBJ)
endif
