/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end of the configured store: disks, or RADOS.
 *
 * The store on RADOS is a module: librados brings libraries and threads that a daemon on disks must not carry.
 * It is loaded if it is configured, from the directory of this program, or from the directory of the packages.
 */
#include "main/daemon.h"

#include "extent/extent.h"
#include "set/set.h"
#include "store/ops.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef GANTRY_MODULE_DIR
#define GANTRY_MODULE_DIR "/usr/lib/gantry"
#endif
#define MODULE "store-rados.so"
/* Requests under way have sent what one pool of buffers holds, at most; the rest are copies of what was given up. */
#define UNWRITTEN_POOLS 2

/* Where it lies: beside the program, which is so before it is installed; else with the packages' libraries. */
static void
module_path(char *path, size_t cap)
{
	ssize_t n = readlink("/proc/self/exe", path, cap - 1);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (slash && (size_t)(slash - path) + sizeof "/" MODULE <= cap) {
		memcpy(slash, "/" MODULE, sizeof "/" MODULE);
		if (access(path, R_OK) == 0)
			return;
	}
	snprintf(path, cap, "%s/%s", GANTRY_MODULE_DIR, MODULE);
}

static int
load(const struct store_ops **ret_ops, char *err, size_t err_len)
{
	static const struct store_module *module;
	char path[512];
	void *so;

	if (!module) {
		module_path(path, sizeof path);
		so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!so) {
			snprintf(err, err_len, "the store on RADOS is in the package gantryd-rados: %s",
				 dlerror());
			return -EINVAL;
		}
		module = dlsym(so, "gantry_store_module");
		if (!module || strcmp(module->version, GANTRY_VERSION) != 0) {
			snprintf(err, err_len, "%s is of version %s, this daemon of %s: install both alike",
				 path, module ? module->version : "(none)", GANTRY_VERSION);
			module = NULL;
			dlclose(so);
			return -EINVAL;
		}
	}
	*ret_ops = module->ops;
	return 0;
}

/* Loads the module and fills in its configuration; as daemon_store_conf(). */
static int
rados_store_conf(const struct conf *conf, struct store_conf *ret_conf, char *err, size_t err_len)
{
	const struct conf_rados *r = &conf->rados;
	const struct store_ops *ops;
	int e = load(&ops, err, err_len);

	if (e < 0)
		return e;
	*ret_conf = (struct store_conf){ .ops = ops,
					 .ports_max = conf->core_nr + 1, /* and buckets.c */
					 .rados = { .conf = r->conf,
						    .user = r->user,
						    .meta_pool = r->meta_pool,
						    .data_pool = r->data_pool,
						    .ns = r->namespace_ ? r->namespace_ : "",
						    .index_shards = (uint32_t)r->index_shards,
						    .object_bytes = (uint32_t)r->object_bytes,
						    .clients = r->clients,
						    .dead_after_ns = r->dead_after_ns,
						    .unwritten_max_bytes =
							    UNWRITTEN_POOLS * conf->memory.buffers_bytes } };
	return 0;
}

int
daemon_store_conf(const struct conf *conf, struct store_disk_conf *disks, struct store_conf *ret_conf,
		  char *err, size_t err_len)
{
	if (conf->store.backend == BACKEND_RADOS)
		return rados_store_conf(conf, ret_conf, err, err_len);
	for (int i = 0; i < conf->store.disk_nr; i++) {
		disks[i] = (struct store_disk_conf){ .path = conf->store.disks[i].path,
						     .size_bytes = conf->store.disks[i].size_bytes };
	}
	*ret_conf = (struct store_conf){ .ops = &store_set_ops,
					 .default_copies = (unsigned)conf->store.default_copies,
					 .disks = { .disk = disks,
						    .nr = conf->store.disk_nr,
						    .index_bytes = conf->memory.index_bytes,
						    .pack_rate = conf->store.pack_rate,
						    .lock_wait_ns = conf->store.lock_wait_ns,
						    .move_rate = conf->store.move_rate,
						    .heal_after_ns = conf->store.heal_after_ns,
						    .timeout_ns = conf->store.disk_timeout_ns,
						    .engine = &extent_ops,
						    .engines_max = STORE_SET_MAX,
						    .accept_missing = conf->store.accept_missing,
						    .accept_missing_nr = conf->store.accept_missing_nr },
					 .ports_max = daemon_store_ports(conf) };
	return 0;
}
