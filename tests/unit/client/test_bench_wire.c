/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of several hosts: what a worker writes is added up to the same as one process would have measured, and what is no row is refused. */
#include "client/cmd/bench/bench_wire.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static struct histogram one, two, both, sum;

static void
histograms(void **state)
{
	json_t *a, *b;

	for (uint64_t i = 1; i < 5000; i++) {
		histogram_add(i % 3 ? &one : &two, i * i);
		histogram_add(&both, i * i);
	}
	a = bench_histogram_json(&one);
	b = bench_histogram_json(&two);
	assert_true(bench_histogram_take(&sum, a) && bench_histogram_take(&sum, b));
	assert_memory_equal(&sum, &both, sizeof sum);
	json_decref(a);
	json_decref(b);
}

static void
bad_histograms(void **state)
{
	static const char *const bad[] = { "{}",
					   "{\"max\":1,\"sum\":1}",
					   "{\"max\":1,\"sum\":-1,\"counts\":[]}",
					   "{\"max\":1,\"sum\":1,\"counts\":[1]}",
					   "{\"max\":1,\"sum\":1,\"counts\":[[1]]}",
					   "{\"max\":1,\"sum\":1,\"counts\":[[4608,1]]}",
					   "{\"max\":1,\"sum\":1,\"counts\":[[-1,1]]}",
					   "{\"max\":1,\"sum\":1,\"counts\":[[1,-1]]}",
					   "{\"max\":1,\"sum\":1,\"counts\":[[1,\"1\"]]}",
					   "{\"max\":9223372036854775807,\"sum\":1,\"counts\":[]}" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		json_t *o = json_loads(bad[i], 0, NULL);

		assert_non_null(o);
		if (bench_histogram_take(&sum, o))
			fail_msg("taken: %s", bad[i]);
		json_decref(o);
	}
}

#define ROW                                                                                                  \
	"{\"mix\":\"put:3+get:1\",\"sizes\":\"4k\",\"at_once\":4,\"way\":\"http\",\"objects\":8,"            \
	"\"seconds\":2.5,"                                                                                   \
	"\"rates\":[10,20],\"byte_rates\":[40960,81920],\"rdma_bytes\":0,\"http_bytes\":4096,\"errors\":1,"  \
	"\"damaged\":0,\"not_rdma\":{},\"errors_by_kind\":{\"SlowDown\":1},\"client_cpu\":{\"seconds\":0.5}" \
	","                                                                                                  \
	"\"put\":{\"operations\":1,\"bytes\":4096,\"histogram\":{\"max\":70,\"sum\":70,\"counts\":[[70,1]]}" \
	"},"                                                                                                 \
	"\"series\":[{\"at\":1.0,\"seconds\":1.0,\"operations\":1,\"bytes\":4096,"                           \
	"\"histogram\":{\"max\":70,\"sum\":70,\"counts\":[[70,1]]}}]}"

static json_t *
row(void)
{
	json_t *o = json_loads(ROW, 0, NULL);

	assert_non_null(o);
	return o;
}

static void
rows(void **state)
{
	struct bench_sum *s = calloc(1, sizeof *s);
	json_t *a = row(), *b = row(),
	       *second = json_deep_copy(json_array_get(json_object_get(a, "series"), 0));
	const struct bench_row *r = &s->row;

	json_object_set_new(b, "seconds", json_real(3));
	json_object_set_new(second, "histogram",
			    json_loads("{\"max\":90,\"sum\":90,\"counts\":[[90,1]]}", 0, NULL));
	json_array_append(json_object_get(b, "series"), second);
	assert_true(bench_sum_add(s, a, 1));
	assert_true(bench_sum_add(s, b, 1));
	assert_int_equal(r->hosts, 2);
	assert_int_equal(r->at_once, 8);
	assert_int_equal(r->objects, 16);
	assert_int_equal(r->op[BENCH_PUT].nr, 2);
	assert_int_equal(r->op[BENCH_PUT].bytes, 8192);
	assert_int_equal(histogram_quantile(&r->op[BENCH_PUT].latency, .5), 70);
	assert_int_equal(r->errors, 2);
	assert_int_equal(r->error.kind[0].nr, 2);
	assert_string_equal(r->error.kind[0].name, "SlowDown");
	assert_int_equal(r->rounds, 2);
	assert_true(r->rate[1] == 40 && r->byte_rate[0] == 81920);
	assert_true(r->seconds == 3 && r->client_cpu_s == 1);
	assert_int_equal(r->way, BENCH_HTTP);
	assert_string_equal(r->mix->text, "put:3+get:1");
	assert_int_equal(r->mix->weight[BENCH_PUT], 3);
	assert_string_equal(r->sizes->text, "4k");
	assert_int_equal(r->second_nr, 2);
	assert_int_equal(r->second[0].nr, 2);
	assert_int_equal(r->second[0].p99_ns, 70);
	assert_int_equal(r->second[1].p99_ns, 90);
	json_decref(a);
	json_decref(b);
	json_decref(second);
	bench_sum_fini(s);
	free(s);
}

static void
bad_rows(void **state)
{
	static const char *const without[] = { "mix",      "sizes",      "way",
					       "at_once",  "objects",    "seconds",
					       "errors",   "client_cpu", "errors_by_kind",
					       "not_rdma", "series",     "damaged" };
	static const char *const with[][2] = {
		{ "mix", "\"steal\"" },
		{ "mix", "\"put,get\"" },
		{ "way", "\"tcp\"" },
		{ "at_once", "-1" },
		{ "at_once", "1025" },
		{ "seconds", "-1" },
		{ "rates", "[1]" },
		{ "put", "{}" },
		{ "put", "[]" },
		{ "not_rdma", "{\"x\":-1}" },
		{ "series", "[{}]" },
		{ "sizes", "\"0123456789012345678901234567890123456789012345678901234567890123\"" }
	};

	for (size_t i = 0; i < sizeof without / sizeof *without + sizeof with / sizeof *with; i++) {
		struct bench_sum *s = calloc(1, sizeof *s);
		size_t k = i - sizeof without / sizeof *without;
		json_t *o = row();

		if (i < sizeof without / sizeof *without)
			json_object_del(o, without[i]);
		else
			json_object_set_new(o, with[k][0], json_loads(with[k][1], JSON_DECODE_ANY, NULL));
		if (bench_sum_add(s, o, 1))
			fail_msg("taken: row %zu", i);
		json_decref(o);
		bench_sum_fini(s);
		free(s);
	}
	/* Another row than that of the first host, and endpoints that are not there. */
	struct bench_sum *s = calloc(1, sizeof *s);
	json_t *a = row(), *b = row();

	assert_true(bench_sum_add(s, a, 1));
	json_object_set_new(b, "way", json_string("rdma"));
	assert_false(bench_sum_add(s, b, 1));
	assert_false(bench_sum_add(s, a, 2));
	json_decref(a);
	json_decref(b);
	bench_sum_fini(s);
	free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(histograms), cmocka_unit_test(bad_histograms),
					    cmocka_unit_test(rows), cmocka_unit_test(bad_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
