# `make bench [F=figure]`: programs in bench/*.c, driven by bench/run.  Not part of `make check`.

BENCHBIN := $(O)/bench/store $(O)/bench/load $(O)/bench/wire $(O)/bench/slice $(O)/bench/objects
BENCHLIB := $(O)/bench/common.o $(O)/bench/raw.o
ALLOBJ += $(BENCHLIB) $(O)/bench/port.o $(BENCHBIN:=.o)

# $(call archives,x) of several modules is asked for once each; repeats inside the group do no harm.
$(O)/bench/store: $(O)/bench/store.o $(BENCHLIB) $(call archives,store)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -Wl,--wrap=crc64_nvme -o $@ $(filter %.o,$^) $(call linkmod,store)
$(O)/bench/load: $(O)/bench/load.o $(BENCHLIB) $(O)/tools.a $(call archives,tools ring)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(call linkmod,tools) $(call linkmod,ring) \
		$(shell pkg-config --libs libibverbs libmlx5)
$(O)/bench/wire: $(O)/bench/wire.o $(O)/bench/common.o $(O)/tests/fake/dc_peer.o $(call archives,chan)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(call linkmod,chan)

$(O)/bench/objects: $(O)/bench/objects.o $(O)/bench/port.o $(BENCHLIB) $(call archives,store)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(call linkmod,store)
$(O)/bench/slice: $(O)/bench/slice.o $(call archives,base)
	@echo "  LINK    $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(call linkmod,base)

.PHONY: bench bench-bin
bench-bin: $(BENCHBIN)
bench:
	@scripts/deps build bench
	@$(MAKE) --no-print-directory all $(BENCHBIN)
	@bench/run $(F)
