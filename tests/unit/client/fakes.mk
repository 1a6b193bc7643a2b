# SPDX-License-Identifier: Apache-2.0
LINK-client/test_transfer := client_rig
LINK-client/test_memory := client_rig
LINK-client/test_ports := client_rig
LINK-client/test_rc := client_rig
# Parts of the command that are pure.
$(O)/unit/client/test_bench: $(addprefix $(O)/src/client/cmd/,bench/bench_plan.o common/content.o)
$(O)/unit/client/test_bench_wire $(O)/fuzz/client_bench: $(addprefix $(O)/src/client/cmd/bench/,bench_wire.o bench_plan.o)
$(O)/unit/client/test_bench_wire $(O)/fuzz/client_bench: LD_TESTS += -ljansson
$(O)/fuzz/client_state: $(addprefix $(O)/src/client/cmd/move/,sink.o resume.o names.o)
$(O)/fuzz/client_hw: $(O)/src/client/cmd/hwcheck/hw_wire.o
LINK-client/test_list := client_rig
LINK-client/test_gpu := client_rig
LINK-client/test_tokens := client_rig
LINK-client/test_stripes := client_rig
$(O)/unit/client/test_stripes: LD_TESTS += -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_rwlock_rdlock -Wl,--wrap=pthread_rwlock_wrlock
# The stand-ins of the drivers of GPUs, by the names that programs load.
STANDIN := $(O)/tests/gpu
STANDINCC = @mkdir -p $(@D); echo "  LINK    $@"; $(CC) -std=gnu17 -D_GNU_SOURCE -shared -fPIC -O1 -Wall -Wextra -Werror -Wl,-soname,$(@F) -o $@
$(STANDIN)/libcuda.so.1: tests/gpu/cuda_standin.c
	$(STANDINCC) $<
$(STANDIN)/libamdhip64.so.6: tests/gpu/rocm_standin.c tests/gpu/cuda_standin.c
	$(STANDINCC) $<
$(STANDIN)/libhsa-runtime64.so.1: tests/gpu/rocm_standin.c
	$(STANDINCC) -DHSA $< -ldl
STANDINS := $(addprefix $(STANDIN)/,libcuda.so.1 libamdhip64.so.6 libhsa-runtime64.so.1)
$(O)/unit/client/test_drivers: | $(STANDINS)
