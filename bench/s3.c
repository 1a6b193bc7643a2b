/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the S3 surface that bench/load drives: what a signature costs.
 *
 * signed_cpu: the CPU of a GET by token of an empty object, signed, against the same unsigned.  The signature
 * is made once for each connection and good for 15 minutes, so the run must not last longer; the daemon
 * checks each.
 */
#include "bench/load.h"

#include "base/clock.h"
#include "tests/tools/sign/signer.h"

#include <time.h>
#include <unistd.h>

#define HASH_OF_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* bench/run gives the daemon these. */
static struct signer signer = {
	.access_key = "AKBENCH", .secret = "bench/secret0123456789", .region = "us-east-1", .service = "s3"
};

int
s3_sign(const char *method, const char *path, const char *token, char *out, size_t cap)
{
	struct sg_header h[4];
	char mac[65], scope[160], list[256];
	time_t now = time(NULL);
	struct tm tm;
	int nr = 0;

	strftime(signer.stamp, sizeof signer.stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	h[nr++] = (struct sg_header){ .name = "host", .value = "localhost" };
	h[nr++] = (struct sg_header){ .name = "x-amz-content-sha256", .value = HASH_OF_EMPTY };
	h[nr++] = (struct sg_header){ .name = "x-amz-date", .value = signer.stamp };
	if (token[0])
		h[nr++] = (struct sg_header){ .name = "x-amz-rdma-token", .value = token };
	sg_sign(&signer, method, path, "", h, nr, HASH_OF_EMPTY, mac);
	sg_scope(&signer, scope);
	sg_signed_headers(h, nr, list, sizeof list);
	return snprintf(out, cap,
			"x-amz-date: %s\r\nx-amz-content-sha256: " HASH_OF_EMPTY
			"\r\nauthorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, "
			"Signature=%s\r\n",
			signer.stamp, signer.access_key, scope, list, mac);
}

static void
signed_cpu(void)
{
	struct row row = { .figure = "signed_cpu", .unit = "us" };
	struct job plain = { .server = &load.one,
			     .op = OP_GET,
			     .prefix = "empty",
			     .conns = 64,
			     .live = 1,
			     .spins = true },
		   with = plain;

	with.is_signed = true;
	load_put_all(&(struct job){ .server = &load.one, .prefix = "empty", .conns = 1, .live = 1 });
	for (int n = -1; n < bench_rounds(); n++) {
		struct result ours = { 0 }, theirs;

		if (n & 1)
			ours = load_run(&with, bench_ns());
		theirs = load_run(&plain, bench_ns());
		if (!(n & 1))
			ours = load_run(&with, bench_ns());
		if (n >= 0)
			row_add(&row, us_each(ours.cpu_ns, ours.n), us_each(theirs.cpu_ns, theirs.n));
	}
	row_print(&row);
}

bool
s3_figure(const char *name)
{
	if (strcmp(name, "signed_cpu") != 0)
		return false;
	signed_cpu();
	return true;
}
