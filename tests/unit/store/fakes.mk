# SPDX-License-Identifier: Apache-2.0
LINK-store/test_mem_store := mem_store store_contract
LINK-store/test_diff := diff mem_store fault_ring
NEEDS-store/test_diff := extent
# The store on RADOS over a cluster in memory, as one object that exports a function only: its functions and those of the engine have
# names in common.
ifneq ($(RADOS),)
RADOS_MEMORY := $(O)/tests/rados_memory.o
RADOS_MEMORY_GATEWAY := $(O)/memory/gateway.o $(O)/memory/gateway_calls.o
RADOS_MEMORY_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard tests/fake/librados*.c)) $(RADOS_MEMORY_GATEWAY)
# A gateway that reserves few ids: the clean-up after a killed one looks at each of them.
$(RADOS_MEMORY_GATEWAY): $(O)/memory/%.o: src/rados/io/%.c $(O)/flags
	@mkdir -p $(@D)
	@$(if $(filter 0,$(V)),echo "  CC      $(VARIANT) $< (memory)")
	$(Q)$(CC) $(ALL_CPPFLAGS) -DID_AHEAD=64u $(ALL_CFLAGS) -c -o $@ $<
ALLOBJ += $(RADOS_MEMORY_GATEWAY)
$(RADOS_MEMORY): $(RADOS_MEMORY_OBJ) $(O)/rados.a $(O)/rados_io.a $(O)/rados_use.a
	@echo "  LINK    $@"
	$(Q)$(CC) -r -nostdlib -o $@ $(RADOS_MEMORY_OBJ) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group
	$(Q)$(AR:%ar=%objcopy) --keep-global-symbol=diff_rados_end $@
$(O)/unit/store/test_diff $(O)/fuzz/rados_diff: $(RADOS_MEMORY)
endif
# The same histories from bytes.
$(O)/fuzz/rados_diff: $(patsubst %.c,$(O)/%.o,$(wildcard tests/fake/diff*.c tests/fake/mem_store*.c))
