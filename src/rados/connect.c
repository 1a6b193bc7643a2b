/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the cluster. */
#include "rados/module_int.h"

#include "base/refuse.h"
#include "rados/keyring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Options of librados. Its throttles would block a core, so their limits are far above the operations in
 * flight. Its timeout for operations would report a write as failed that is executed later, so there is none.
 * Questions to the monitors must end.
 */
static const struct option {
	const char *name, *value;
} options[] = {
	{ "objecter_inflight_ops", "1048576" },
	{ "objecter_inflight_op_bytes", "1099511627776" },
	{ "rados_osd_op_timeout", "0" },
	{ "rados_mon_op_timeout", "10" },
	{ "client_mount_timeout", "10" },
	{ "log_file", "" },
	{ "admin_socket", "" },
	{ "log_to_stderr", "false" },
	{ "err_to_stderr", "true" },
};

static int
open_pool(struct client *c, enum pool pool, const char *name, const char *ns, char *err, size_t err_len)
{
	int e = rados_ioctx_create(c->cluster, name, &c->io[pool]);

	if (e == -ENOENT)
		return refuse(err, err_len, -EINVAL, "pool %s: there is no such pool", name);
	if (e < 0)
		return refuse(err, err_len, e, "pool %s: %s", name, strerror(-e));
	if (ns && *ns)
		rados_ioctx_set_namespace(c->io[pool], ns);
	/* A full pool returns an error immediately, and allows deletes; otherwise all operations would
	 * wait. */
	rados_set_pool_full_try(c->io[pool]);
	return 0;
}

void
disconnect(struct client *c)
{
	for (int i = 0; i < POOL_NR; i++) {
		if (c->io[i])
			rados_ioctx_destroy(c->io[i]);
	}
	if (c->cluster)
		rados_shutdown(c->cluster);
	*c = (struct client){ 0 };
}

int
connect_to(struct client *c, const struct store_rados_conf *rc, char *err, size_t err_len)
{
	const char *dir = getenv("CREDENTIALS_DIRECTORY");
	int e = rados_create(&c->cluster, rc->user);
	char keyring[4096];
	struct stat st;

	if (e < 0)
		return refuse(err, err_len, e, "librados: %s", strerror(-e));
	e = rados_conf_read_file(c->cluster, rc->conf);
	if (e < 0)
		return refuse(err, err_len, -EINVAL, "%s: %s", rc->conf, strerror(-e));
	/* The keyring that systemd passes (systemd/gantryd-rados.conf); its content is "none" if there is
	 * no key. */
	if (dir)
		snprintf(keyring, sizeof keyring, "%s/ceph.keyring", dir);
	if (dir && stat(keyring, &st) == 0 && st.st_size > (off_t)strlen("none"))
		e = rados_conf_set(c->cluster, "keyring", keyring);
	for (size_t i = 0; e == 0 && i < sizeof options / sizeof *options; i++)
		e = rados_conf_set(c->cluster, options[i].name, options[i].value);
	/* The callbacks only post messages; each further thread would have to be woken for each of them. */
	rados_conf_set(c->cluster, "librados_thread_count", "1");
	if (e == 0)
		e = rados_connect(c->cluster);
	/* No key, or a rejected key: a retry cannot succeed. */
	if (e == -ENOENT || e == -EPERM)
		e = -EACCES;
	if (e < 0)
		refuse(err, err_len, e, "the cluster of %s cannot be reached as client.%s: %s", rc->conf,
		       rc->user, strerror(-e));
	if (e == -EACCES)
		keyring_say(c->cluster, rc->user, err, err_len);
	if (e < 0)
		return e;
	e = open_pool(c, POOL_META, rc->meta_pool, rc->ns, err, err_len);
	return e < 0 ? e : open_pool(c, POOL_DATA, rc->data_pool, rc->ns, err, err_len);
}
