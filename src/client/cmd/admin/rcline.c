/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators' commands say of RC, from the daemon's /status and /rails. */
#include "client/cmd/admin/rcline.h"

#include "client/cmd/common/admin_client.h"

const json_t *
rail_channels(const json_t *rail)
{
	const json_t *dci = json_object_get(rail, "dci");

	return json_at(dci, "all") > 0 ? dci : json_object_get(rail, "rc");
}

void
rcline_print(FILE *out, const json_t *status)
{
	const json_t *rc = json_object_get(json_object_get(status, "rdma"), "rc");
	const char *limit, *between = "; refused by ";
	json_t *nr;

	if (!json_is_object(rc))
		return;
	fprintf(out, "%-10s %.0f connections, %.0f in use, %.0f made", "rc", json_at(rc, "open"),
		json_at(rc, "leased"), json_at(rc, "made"));
	if (json_at(rc, "failed") > 0)
		fprintf(out, ", %.0f failed", json_at(rc, "failed"));
	json_object_foreach(json_object_get(rc, "refused"), limit, nr)
	{
		if (json_number_value(nr) <= 0)
			continue;
		fprintf(out, "%s%s: %.0f", between, limit, json_number_value(nr));
		between = ", ";
	}
	fputc('\n', out);
}
