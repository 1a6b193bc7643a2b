# SPDX-License-Identifier: Apache-2.0
# `make bench [F=figure]`: programs in bench/*.c, driven by bench/run.  Not part of `make check`.

BENCHBIN := $(O)/bench/store $(O)/bench/load $(O)/bench/wire $(O)/bench/slice $(O)/bench/objects $(O)/bench/fill \
	$(O)/bench/list $(O)/bench/http $(O)/bench/client $(O)/bench/server $(O)/bench/disks \
	$(O)/bench/beside $(O)/bench/scale
BENCHLIB := $(O)/bench/common.o $(O)/bench/raw.o
ALLOBJ += $(BENCHLIB) $(addprefix $(O)/bench/,plain.o plain_rc.o port.o figures.o growth.o rc.o s3.o) $(BENCHBIN:=.o)

# $(call archives,x) of several modules is asked for once each; repeats inside the group do no harm.
$(O)/bench/store: $(O)/bench/store.o $(BENCHLIB) $(call archives,extent)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -Wl,--wrap=crc64_nvme -o $@ $(filter %.o,$^) $(call linkmod,extent)
$(O)/bench/load: $(addprefix $(O)/bench/,figures.o growth.o)
$(O)/bench/scale: $(O)/bench/scale.o
$(O)/bench/load $(O)/bench/scale: $(addprefix $(O)/bench/,load.o rc.o s3.o) $(BENCHLIB) $(O)/tools.a $(call archives,tools ring)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o,$^) $(call linkmod,tools) $(call linkmod,ring) \
		$(shell pkg-config --libs libibverbs libmlx5 libcrypto)
$(O)/bench/wire: $(addprefix $(O)/bench/,wire.o plain.o plain_rc.o common.o) $(O)/tests/fake/peer.o $(call archives,chan)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o,$^) $(call linkmod,chan)

$(O)/bench/objects $(O)/bench/fill $(O)/bench/list $(O)/bench/disks: $(O)/bench/%: $(O)/bench/%.o $(O)/bench/port.o $(BENCHLIB) $(call archives,extent set)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o,$^) $(call linkmod,extent set)
$(O)/bench/http $(O)/bench/beside: $(O)/bench/%: $(O)/bench/%.o $(O)/bench/common.o $(call archives,base)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o,$^) $(call linkmod,base) $(shell pkg-config --libs libcrypto)
$(O)/bench/client: $(O)/bench/client.o $(O)/bench/common.o $(call archives,client)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o,$^) $(call linkmod,client)
# By what a program has of it: its header, and the library.
$(O)/bench/server: $(addprefix $(O)/bench/,server.o plain.o common.o) $(O)/tests/fake/peer.o $(call archives,token) $(O)/libgantry-server.so
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -Wl,-rpath,'$$ORIGIN/..' -o $@ $(filter %.o,$^) $(O)/libgantry-server.so.0 $(call linkmod,token) \
		$(shell pkg-config --libs libibverbs libmlx5)
$(O)/bench/slice: $(O)/bench/slice.o $(call archives,base)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o,$^) $(call linkmod,base)

# Where librados is.
$(O)/bench/rados: $(addprefix $(O)/bench/,rados.o common.o) $(call archives,rados)
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call linkmod,rados) -lrados
ALLOBJ += $(O)/bench/rados.o

.PHONY: bench bench-bin bench-against bench-rados
bench-bin: $(BENCHBIN)
bench:
	@scripts/deps build bench
	@$(MAKE) --no-print-directory all $(BENCHBIN)
	@bench/run $(F)

# The same rows of another revision, in turns with this one's: `make bench-against REV=... [F=figure] [ROUNDS=7]`.
bench-against:
	@[ -n '$(REV)' ] || { echo 'make bench-against REV=revision [F=figure] [ROUNDS=7]' >&2; exit 2; }
	@scripts/deps build bench
	@$(MAKE) --no-print-directory all $(BENCHBIN)
	@$(if $(ROUNDS),ROUNDS='$(ROUNDS)') bench/against '$(REV)' $(F)

# The same against the revision in bench/PINNED: `make bench-pinned [F=figure] [ROUNDS=7]`. MOVE=1 writes this tree's there when no figure has lost.
.PHONY: bench-pinned
bench-pinned:
	@scripts/deps build bench
	@$(MAKE) --no-print-directory all $(BENCHBIN)
	@$(if $(ROUNDS),ROUNDS='$(ROUNDS)') bench/against --pinned $(if $(MOVE),--move) $(F)

# How long a start takes, against another revision: `make bench-starts REV=... [N=objects] [MB_S=300]`.
.PHONY: bench-starts
bench-starts:
	@[ -n '$(REV)' ] || { echo 'make bench-starts REV=revision [N=objects] [MB_S=300]' >&2; exit 2; }
	@$(MAKE) --no-print-directory bench-bin
	@$(if $(MB_S),MB_S='$(MB_S)') $(if $(ROUNDS),ROUNDS='$(ROUNDS)') bench/starts '$(REV)' $(N)

# RDMA and HTTP in turns with `gantry bench`, as a table: `make bench-numbers [URL=http://HOST:PORT/BUCKET ADMIN=NAME] [WRITE=1]`.
.PHONY: bench-numbers
bench-numbers:
	@scripts/deps build bench
	@$(MAKE) --no-print-directory all $(O)/tools/rawclient
	@$(if $(ADMIN),ADMIN='$(ADMIN)') bench/numbers $(if $(WRITE),--write) $(if $(URL),'$(URL)')

# Several cores compared with one, and the number of cores that fill a port: `make bench-scale`, `make bench-cores [GBIT=400]`.
.PHONY: bench-scale bench-cores
bench-scale bench-cores:
	@scripts/deps build
	@$(MAKE) --no-print-directory all $(O)/bench/scale
	@$(if $(GBIT),GBIT='$(GBIT)') bench/scaling $(@:bench-%=%)

# How cost grows: `make bench-growth [F=curve] [N=objects]`, and docs/growth-*.svg from what it wrote.
.PHONY: bench-growth bench-plot
bench-growth:
	@scripts/deps build bench
	@$(MAKE) --no-print-directory all $(BENCHBIN)
	@$(if $(N),N='$(N)') bench/grow $(F)
bench-plot:
	@bench/plot build/growth.json docs

# The store on RADOS in turns with librados' own calls, on a cluster in a directory: `make bench-rados [F=figure]`.
bench-rados:
	@scripts/deps build bench rados
	@$(MAKE) --no-print-directory all $(O)/bench/rados
	@bench/rados.sh $(F)
