# SPDX-License-Identifier: Apache-2.0
# The store simulation: src/store, src/model, src/set and src/extent once more, in objects of its own, on a simulated ring, disk and clock (tests/sim/sim.h).
# Included by the top Makefile; `make testbins` builds $(O)/sim/sim.

# Pools as well: what a store that is cut had of them is given back.
SIM_STORE_SRC := src/base/pool.c $(filter-out src/extent/disk/file.c src/extent/disk/whoami.c src/extent/disk/helper.c,$(wildcard $(foreach m,store model set extent,src/$(m)/*.c src/$(m)/*/*.c)))
SIM_STORE_OBJ := $(SIM_STORE_SRC:src/%.c=$(O)/sim/src/%.o)
SIM_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard tests/sim/*.c))
SIM_TESTS := $(O)/sim/sim

# Small numbers and rules that can be switched off come in front of the real headers.
SIM_CPPFLAGS := -iquote tests/sim/over -DSTORE_SLOT_BITS=6
$(foreach s,$(wildcard tests/sim/*.c),$(eval CFLAGS-$(s) := $(SIM_CPPFLAGS)))
# Between lookup and pin, where the leader publishes, where a map gets its space and the leader sets memory aside, the simulation has a word.
SIM-extent/object/read := -Dpin_add=sim_pin_add
SIM-set/start/discover := -Dpthread_create=sim_pthread_create
# The mover of a set is a coroutine (many_moves.c), with small numbers; between a look at who has a key and the call to it others may run.
SIM_MOVER := -Dpthread_create=sim_mover_create -Dpthread_join=sim_mover_join -Dpthread_cond_wait=sim_mover_wait \
	-Dpthread_setname_np=sim_mover_name -Dstore_format=sim_format_one -Dbufpool_init_class=sim_bufs_init -Dbufpool_get=sim_bufs_get \
	-Dbufpool_put=sim_bufs_put -Dbufpool_fini=sim_bufs_fini '-DPAUSE_NS=(20*NS_PER_MS)' -DFEW=2 -DKEYS_MAX=6 -DWALK_KEYS=3
$(foreach f,disk_admin disk_change move_job move_slots move_send mover,$(eval SIM-set/$(f) := $(SIM_MOVER)))
SIM-store/user := -Dring_turn=sim_user_turn
SIM-set/set := -DSIM_LOOKED_UP
SIM-set/set_list := -DSIM_LOOKED_UP
SIM-set/find_port := -DSIM_LOOKED_UP
SIM-extent/log/commit := -Dpublish_block=sim_publish_block
SIM-extent/log/dead := -Dtree_reserve=sim_tree_reserve -Drec_new=sim_rec_new
SIM-extent/object/map := -Dalloc_take=sim_alloc_take

$(O)/sim/src/%.o: src/%.c $(O)/flags $(O)/flags-tests tests/sim/sim.mk
	$(Q)$(call say,CC     ,$(VARIANT) $< (sim))$(CC) $(SIM_CPPFLAGS) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -include tests/sim/env.h $(SIM-$*) -c -o $@ $<

$(O)/sim/sim: $(SIM_OBJ) $(SIM_STORE_OBJ) $(O)/base.a
	@mkdir -p $(@D); echo "  LINK    $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(LD_TESTS) -o $@ $(SIM_OBJ) $(SIM_STORE_OBJ) $(O)/base.a $(call pkglibs,base) -lpthread
ALLOBJ += $(SIM_OBJ) $(SIM_STORE_OBJ)
