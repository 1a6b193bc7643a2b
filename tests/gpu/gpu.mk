# SPDX-License-Identifier: Apache-2.0
# Programs for a machine with a GPU, built over the public header alone: scripts/gpu-bundle takes them there.
GPU_TESTS := $(patsubst tests/gpu/%.c,$(O)/gpu/%,$(filter-out %_standin.c,$(wildcard tests/gpu/*.c)))
.PHONY: gpu-tests
gpu-tests: $(GPU_TESTS)
$(GPU_TESTS): $(O)/gpu/%: tests/gpu/%.c $(O)/libgantry.so src/client/gantry.h
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) -D_GNU_SOURCE $(ALL_CFLAGS) -Isrc/client -o $@ $< -L$(O) -lgantry -ldl -lpthread
