/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the port of the engine at which a key is changed or read. */
#include "set/map/set_rules.h"
#include "set/set_int.h"

#include <errno.h>

struct store_port *
set_port_to_write(struct store_port *sp, const struct store_key *k, int *ret_error)
{
	struct set_port *p = set_port(sp);
	int home = set_primary(p->set, k);

	*ret_error = -ENODEV;
	if (home == SET_NOWHERE)
		return RULE_MISSING_IS_503 ? NULL : port_engine(p, 0);
	*ret_error = -EROFS;
	if (set_is_read_only(p->set))
		return NULL;
	/* M33: a failed engine is not used, because it does not know all buckets. Without the rule the engine
	 * itself refuses the write. */
	return set_is_in(p->set, home) || !RULE_FAILED_HAS_NO_BUCKETS ? port_engine(p, home) : NULL;
}

struct store_port *
set_port_to_read(struct store_port *sp, const struct store_key *k, int *ret_error)
{
	struct set_port *p = set_port(sp);
	int home = set_primary(p->set, k);
	bool is_there;

	*ret_error = -ENODEV;
	if (home == SET_NOWHERE)
		return RULE_MISSING_IS_503 ? NULL : port_engine(p, 0);
	if (!set_is_in(p->set, home) && set_has_missed(p->set, home, k->bucket, k->bucket_len, &is_there)) {
		*ret_error = is_there ? -ENOENT : -ENXIO;
		return NULL;
	}
	return port_engine(p, home);
}
