# SPDX-License-Identifier: Apache-2.0
LINK-client/test_transfer := client_rig
LINK-client/test_memory := client_rig
LINK-client/test_ports := client_rig
# Parts of the command that are pure.
$(O)/unit/client/test_bench: $(addprefix $(O)/src/client/cmd/,bench/bench_plan.o common/content.o)
$(O)/fuzz/client_state: $(addprefix $(O)/src/client/cmd/move/,sink.o resume.o names.o)
$(O)/fuzz/client_hw: $(O)/src/client/cmd/hwcheck/hw_wire.o
LINK-client/test_list := client_rig
LINK-client/test_gpu := client_rig
LINK-client/test_tokens := client_rig
