# SPDX-License-Identifier: Apache-2.0
# The software mlx5 device: drop-in libibverbs.so.1, libmlx5.so.1 and librdmacm.so.1, and softnicctl.  Included by the top Makefile.
# Nothing links against these; programs find them through LD_LIBRARY_PATH (scripts/with-softnic).

SOFTNIC_LIBS := $(O)/softnic/libibverbs.so.1 $(O)/softnic/libmlx5.so.1 $(O)/softnic/cm/librdmacm.so.1
SOFTNIC_MLX5_SRC := src/softnic/mlx5.c
SOFTNIC_CM_SRC := $(wildcard src/softnic/cm_*.c)
SOFTNIC_CTL_SRC := src/softnic/softnicctl.c $(wildcard src/softnic/ctl_*.c)
SOFTNIC_SRC := $(filter-out $(SOFTNIC_MLX5_SRC) $(SOFTNIC_CM_SRC) $(SOFTNIC_CTL_SRC),$(wildcard src/softnic/*.c))
SOFTNIC_OBJ := $(SOFTNIC_SRC:%.c=$(O)/%.o)
SOFTNIC_MLX5_OBJ := $(SOFTNIC_MLX5_SRC:%.c=$(O)/%.o)
SOFTNIC_CM_OBJ := $(SOFTNIC_CM_SRC:%.c=$(O)/%.o)
SOFTNIC_INCLUDE := /usr/include/infiniband

$(foreach s,$(SOFTNIC_SRC) $(SOFTNIC_MLX5_SRC) $(SOFTNIC_CM_SRC),$(eval CFLAGS-$(s) := -fvisibility=hidden))
ALLOBJ += $(SOFTNIC_OBJ) $(SOFTNIC_MLX5_OBJ) $(SOFTNIC_CM_OBJ) $(SOFTNIC_CTL_SRC:%.c=$(O)/%.o)

.PHONY: softnic
softnic: $(SOFTNIC_LIBS) $(O)/softnicctl

$(O)/softnic/ibverbs_stubs.c: src/softnic/gen_stubs.sh src/softnic/ibverbs.map $(SOFTNIC_OBJ)
	@mkdir -p $(@D)
	$(Q)src/softnic/gen_stubs.sh src/softnic/ibverbs.map $(SOFTNIC_INCLUDE)/verbs.h $(SOFTNIC_OBJ) > $@.tmp && mv $@.tmp $@

$(O)/softnic/mlx5_stubs.c: src/softnic/gen_stubs.sh src/softnic/mlx5.map $(SOFTNIC_MLX5_OBJ)
	@mkdir -p $(@D)
	$(Q)src/softnic/gen_stubs.sh src/softnic/mlx5.map $(SOFTNIC_INCLUDE)/mlx5dv.h $(SOFTNIC_MLX5_OBJ) > $@.tmp && mv $@.tmp $@

$(O)/softnic/rdmacm_stubs.c: src/softnic/gen_stubs.sh src/softnic/rdmacm.map $(SOFTNIC_CM_OBJ)
	@mkdir -p $(@D)
	$(Q)src/softnic/gen_stubs.sh -1 src/softnic/rdmacm.map $(SOFTNIC_INCLUDE)/../rdma/rdma_cma.h $(SOFTNIC_CM_OBJ) > $@.tmp && mv $@.tmp $@

# A stub has no parameters, whatever the header says, so it must not see the header nor the compiler's own ideas.
$(O)/softnic/%_stubs.o: $(O)/softnic/%_stubs.c
	$(Q)$(CC) $(ALL_CFLAGS) -fno-builtin -c -o $@ $<

$(O)/softnic/libibverbs.so.1: $(SOFTNIC_OBJ) $(O)/softnic/ibverbs_stubs.o src/softnic/ibverbs.map
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=src/softnic/ibverbs.map \
		-Wl,-z,nodelete -o $@ $(filter %.o,$^) -lpthread

$(O)/softnic/libmlx5.so.1: $(SOFTNIC_MLX5_OBJ) $(O)/softnic/mlx5_stubs.o src/softnic/mlx5.map $(O)/softnic/libibverbs.so.1
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libmlx5.so.1 -Wl,--version-script=src/softnic/mlx5.map \
		-Wl,-z,nodelete -o $@ $(filter %.o,$^) $(O)/softnic/libibverbs.so.1

# In a folder of its own, since the daemon's tests are those of machines without a connection manager.
$(O)/softnic/cm/librdmacm.so.1: $(SOFTNIC_CM_OBJ) $(O)/softnic/rdmacm_stubs.o src/softnic/rdmacm.map $(O)/softnic/libibverbs.so.1
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,librdmacm.so.1 -Wl,--version-script=src/softnic/rdmacm.map \
		-Wl,-z,nodelete -o $@ $(filter %.o,$^) $(O)/softnic/libibverbs.so.1 -lpthread

$(O)/softnicctl: $(SOFTNIC_CTL_SRC:%.c=$(O)/%.o) $(O)/src/softnic/fabric.o
	@echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^

# Its tests: built against the distribution's libraries, run over ours (tests/softnic/*.sh).
SOFTNIC_TEST_SRC := $(wildcard tests/softnic/*.c)
SOFTNIC_TESTS := $(patsubst tests/softnic/%.c,$(O)/softnic-tests/%,$(filter tests/softnic/t_%.c,$(SOFTNIC_TEST_SRC)))
SOFTNIC_TEST_LIB := $(patsubst %.c,$(O)/%.o,$(filter-out tests/softnic/t_%.c,$(SOFTNIC_TEST_SRC))) \
	$(O)/src/client/cmd/hwcheck/hw_verbs.o $(O)/src/client/cmd/hwcheck/hw_rc.o $(O)/base.a
$(SOFTNIC_TESTS): $(O)/softnic-tests/%: $(O)/tests/softnic/%.o $(SOFTNIC_TEST_LIB) | softnic
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(filter %.o %.a,$^) -libverbs -lmlx5 -lrdmacm -lpthread
ALLOBJ += $(SOFTNIC_TEST_SRC:%.c=$(O)/%.o)
