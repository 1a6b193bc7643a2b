/* SPDX-License-Identifier: Apache-2.0 */
/* A history of operations on the store in memory, and on the store on RADOS on a cluster in memory; any difference of answers ends the
 * program (tests/fake/diff.h). The bytes are the choices. */
#include "tests/fake/diff.h"

#include "base/check.h"
#include "base/log.h"

#include <stdlib.h>

#define OPS_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct bufpool bufs;
	static struct diff_end *ends[2];
	struct diff_source s = { .bytes = data, .nr = len };

	if (!diff_rados_end)
		return 0;
	if (!ends[0]) {
		log_init(LOG_PLAIN, (enum log_level) - 1);
		check(bufpool_init(&bufs, 8 << 20) == 0);
		ends[0] = diff_mem_end(&bufs);
		ends[1] = diff_rados_end(&bufs);
		diff_clock_all();
	}
	diff_start(ends, 2);
	if (diff_history(ends, 2, &s, OPS_MAX, getenv("VERBOSE") != NULL) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		ends[i]->stop(ends[i]);
	return 0;
}
