/* SPDX-License-Identifier: Apache-2.0 */
/* The credentials file, what is refused in it (claim TM40), and what its grants allow (claim TM60). */
#include "sig.h"

#include "auth/auth_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char errors[8192];

static int
parse(const char *yaml, struct auth_keys **ret_keys)
{
	FILE *err = fmemopen(errors, sizeof errors, "w");
	int r;

	memset(errors, 0, sizeof errors);
	*ret_keys = NULL;
	r = auth_keys_parse(yaml, strlen(yaml), "keys.yaml", ret_keys, err);
	fclose(err);
	return r;
}

static void
refused(const char *yaml, const char *says)
{
	struct auth_keys *keys;

	assert_int_equal(parse(yaml, &keys), -22);
	assert_null(keys);
	if (!strstr(errors, says))
		fail_msg("\"%s\" does not say \"%s\"", errors, says);
	assert_null(strstr(errors, "verysecret"));
}

#define K "access_key: AKEY, secret_key: verysecret"

static void
bad_files(void **state)
{
	refused("", "keys.yaml: expected a list of credentials, or [] for none at all");
	refused("# all of it is gone\n", "or [] for none at all");
	refused("{}", "keys.yaml:1:1: expected a list");
	refused("verysecret", "expected a list");
	refused("- a", "keys.yaml:1:3: [0]: expected a map");
	refused("- { access_key: AKEY }", "[0]: secret_key is missing");
	refused("- { secret_key: verysecret }", "[0]: access_key is missing");
	refused("- { " K ", colour: verysecret }", "keys.yaml:1:47: [0]: unknown key");
	refused("- { access_key: AKEY, verysecret }", "unknown key"); /* a colon is missing */
	refused("- { " K ", access_key: AKEY }", "[0].access_key: given twice");
	refused("- { " K ", secret_key: verysecret }", "[0].secret_key: given twice");
	refused("- { access_key: AKEY, secret_key: short }", "[0].secret_key: expected 8 to 256");
	refused("- { access_key: A/KEY, secret_key: verysecret }",
		"character that it cannot have (number 2)");
	refused("- { access_key: \"A\\tKEY\", secret_key: verysecret }", "number 2");
	refused("- { access_key: AKEY, secret_key: [verysecret] }", "[0].secret_key: expected one value");
	refused("- { " K ", read_only: verysecret }", "[0].read_only: expected true or false");
	refused("- { " K ", expires: verysecret }", "[0].expires: expected a time");
	refused("- { " K ", expires: 2026-02-31 }", "[0].expires: expected a time");
	refused("- { " K ", expires: \"2026-13-31T00:00:00Z\" }", "[0].expires: expected a time");
	refused("- { " K ", expires: \"1970-01-01T00:00:00+00:01\" }", "[0].expires: expected a time");
	refused("- { " K ", expires: \"2026-12-31T00:00:00+24:00\" }", "[0].expires: expected a time");
	refused("- { " K ", expires: \"2026-12-31T00:00:00-00:60\" }", "[0].expires: expected a time");
	refused("- { " K ", expires: \"2026-12-31T00:00:00Z\", expires: \"2026-12-31T00:00:00Z\" }",
		"[0].expires: given twice");
	refused("- { " K ", made: verysecret }", "keys.yaml:1:53: [0].made: expected a time");
	refused("- { " K ", made: [a] }", "[0].made: expected one value");
	refused("- { " K ", made: \"2026-12-31T00:00:00Z\", made: \"2026-12-31T00:00:00Z\" }",
		"[0].made: given twice");
	refused("- { " K ", comment: \"\" }",
		"keys.yaml:1:56: [0].comment: expected a line of 1 to 200 bytes");
	refused("- { " K ", comment: \"verysecret\\n\" }", "[0].comment: expected a line");
	refused("- { " K ", comment: \"a\\0b\" }", "[0].comment: expected a line");
	refused("- { " K ", comment: \"\\e[0m\" }", "[0].comment: expected a line");
	refused("- { " K ", comment: [a] }", "[0].comment: expected one value");
	refused("- { " K ", comment: a, comment: b }", "[0].comment: given twice");
	refused("- { " K ", grants: [{ bucket: a, comment: b }] }", "[0].grants[0]: unknown key");
	refused("- { " K ", grants: [] }", "[0].grants: expected 1 to 64");
	refused("- { " K ", grants: [{ prefix: a }] }", "[0].grants[0]: bucket is missing");
	refused("- { " K ", grants: [{ bucket: A }] }", "[0].grants[0].bucket: expected a bucket");
	refused("- { " K ", grants: [{ bucket: \"a*b\" }] }", "bucket: expected a bucket");
	refused("- { " K ", grants: [{ bucket: a, bucket: b }] }", "bucket: given twice");
	refused("- { " K ", grants: [{ bucket: a, verysecre: b }] }", "[0].grants[0]: unknown key");
	refused("- { " K ", gids: 10.0.0.1 }", "[0].gids: expected a list");
	refused("- { " K ", gids: [] }", "[0].gids: expected 1 to 64 addresses or blocks");
	refused("- { " K ", gids: [verysecret] }", "[0].gids[0]: expected an address or a block");
	refused("- { " K ", gids: [10.0.0.0/33] }", "[0].gids[0]: expected an address");
	/* Claim TM75: it would be 10.0.0.0/8, without a word. */
	refused("- { " K ", gids: [10.1.2.3/8] }",
		"[0].gids[0]: the address has bits set after the block's length");
	refused("- { " K ", from: [\"fd00::1/64\"] }",
		"[0].from[0]: the address has bits set after the block's length: write fd00::/64");
	refused("- { " K ", from: [10.0.0.1, 10.1.2.3/8] }",
		"[0].from[1]: the address has bits set after the block's length: write 10.0.0.0/8");
	refused("- { " K ", gids: [10.0.0.1, fd00::/129] }", "[0].gids[1]: expected an address");
	refused("- { " K ", gids: [\"10.0.0.1\\0\"] }", "[0].gids[0]: expected an address");
	refused("- { " K ", gids: [[10.0.0.1]] }", "[0].gids[0]: expected one value");
	refused("- { " K ", gids: [10.0.0.1], gids: [10.0.0.1] }", "[0].gids: given twice");
	refused("- { " K ", grants: [{ bucket: a, gids: [10.0.0.1] }] }", "[0].grants[0]: unknown key");
	refused("- { " K ", no_delete: verysecret }", "[0].no_delete: expected true or false");
	refused("- { " K ", no_overwrite: 1 }", "[0].no_overwrite: expected true or false");
	refused("- { " K ", grants: [{ bucket: a, no_delete: 1 }] }",
		"[0].grants[0].no_delete: expected true or false");
	refused("- { " K ", from: [] }", "[0].from: expected 1 to 64 addresses or blocks");
	refused("- { " K ", from: [10.0.0.0/33] }", "[0].from[0]: expected an address");
	refused("- { " K ", from: [10.0.0.1], from: [10.0.0.1] }", "[0].from: given twice");
	refused("- { " K ", grants: [{ bucket: a, from: [10.0.0.1] }] }", "[0].grants[0]: unknown key");
	refused("- { " K " }\n- { " K " }", "[1] has the access key and the secret of [0]");
	refused("- { " K " }\n--- []", "a second document");
	refused("- { " K, "not valid YAML");
	refused("- { [a]: b }", "expected a key");
	refused("- &a { " K ", grants: *a }", "");
}

static void
good_files(void **state)
{
	struct auth_keys *keys, *again;

	assert_int_equal(parse("# nobody\n[]\n", &keys), 0);
	assert_int_equal(keys->nr, 0);
	auth_keys_put(keys);
	assert_int_equal(parse("- { " K " }\n- { access_key: AKEY, secret_key: othersecret }\n"
			       "- access_key: B.+@-_\n  secret_key: \"a/b+c=d#e: f\\\"\"\n",
			       &keys),
			 -22); /* a blank */
	assert_int_equal(
		parse("- { " K " }\n- { access_key: AKEY, secret_key: othersecret }\n"
		      "- access_key: B.+@-_\n  secret_key: \"a/b+c=d#e:f\\\"\"\n"
		      "  expires: 2026-12-31T23:59:59.25+01:00\n  grants:\n"
		      "    - { bucket: \"*\", read_only: true }\n    - { bucket: b-*, prefix: \"a b/\" }\n",
		      &keys),
		0);
	assert_int_equal(keys->nr, 3);
	again = auth_keys_get(keys);
	auth_keys_put(keys);
	assert_int_equal(again->nr, 3);
	auth_keys_put(again);
}

/* claim TM97: the id of a secret is that of every gateway and every version: these were computed by sha256sum. */
static void
labels(void **state)
{
	static const char *const ids[] = { "5753bc51", "2ff14ec5", "82b58df7" };
	char longest[AUTH_COMMENT_MAX + 2];
	struct auth_key_info info;
	struct auth_keys *keys;
	struct span text = { longest, AUTH_COMMENT_MAX };
	char *copy = NULL;

	assert_int_equal(
		parse("- { " K
		      ", comment: \"the caf\xc3\xa9: \\\"A\\\"\", made: 2026-11-29T12:00:00+01:00 }\n"
		      "- { access_key: AKEY, secret_key: othersecret }\n"
		      "- { access_key: BKEY, secret_key: verysecret, session_token: t }\n",
		      &keys),
		0);
	for (int i = 0; i < 3; i++) {
		assert_true(auth_keys_info(keys, i, &info));
		assert_string_equal(info.secret_id, ids[i]);
		assert_true(info.have_made == (i == 0) && !info.comment == (i > 0));
	}
	assert_true(auth_keys_info(keys, 0, &info));
	assert_string_equal(info.comment, "the caf\xc3\xa9: \"A\"");
	assert_int_equal(info.made_s, 1795950000);
	auth_keys_put(keys);
	memset(longest, 'x', sizeof longest);
	assert_int_equal(credentials_comment(text, &copy), 0);
	assert_int_equal(strlen(copy), AUTH_COMMENT_MAX);
	free(copy);
	text.len++;
	assert_int_equal(credentials_comment(text, &copy), -EINVAL);
	/* Entries that differ in one of these are not the same: `gantry key` would lose it. */
	assert_int_equal(parse("- { " K ", session_token: a }\n- { " K ", session_token: b, comment: c }\n"
			       "- { " K ", session_token: c, made: \"2026-01-01T00:00:00Z\" }",
			       &keys),
			 0);
	for (int i = 0; i < 3; i++)
		keys->entry[i].token[0] = 'a';
	assert_true(entry_same(&keys->entry[1], &keys->entry[1]));
	assert_false(entry_same(&keys->entry[0], &keys->entry[1]));
	assert_false(entry_same(&keys->entry[0], &keys->entry[2]));
	auth_keys_put(keys);
}

/* claim TM9: which addresses tokens of a key may name. */
static void
gids(void **state)
{
	static const struct {
		const char *gid;
		bool listed;
	} of[] = {
		{ "::ffff:10.1.2.3", true },
		{ "::ffff:10.1.3.0", false },
		{ "::ffff:192.168.7.9", true },
		{ "::ffff:192.168.7.8", false },
		{ "fd00:1::77", true },
		{ "fd00:2::77", false },
		{ "::1", false },
	};
	struct auth_keys *keys;
	struct identity all, some, nobody;

	assert_int_equal(parse("- { access_key: AALL, secret_key: verysecret }\n"
			       "- { access_key: SOME, secret_key: verysecret, "
			       "gids: [10.1.2.0/24, 192.168.7.9, \"fd00:1::/32\"] }\n",
			       &keys),
			 0);
	identity_init(&all);
	identity_init(&some);
	identity_init(&nobody);
	nobody.anonymous = true;
	all.entry = &keys->entry[0];
	some.entry = &keys->entry[1];
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		uint8_t gid[16];

		assert_int_equal(inet_pton(AF_INET6, of[i].gid, gid), 1);
		assert_true(auth_gid_allowed(&all, gid) && auth_gid_allowed(&nobody, gid));
		if (auth_gid_allowed(&some, gid) != of[i].listed)
			fail_msg("%s", of[i].gid);
	}
	assert_true(auth_gid_allowed(&all, NULL));
	assert_false(auth_gid_allowed(&some, NULL));
	auth_keys_put(keys);
}

static void
modes(void **state)
{
	char path[] = "/tmp/gantry-keys-XXXXXX", fifo[64];
	int fd = mkstemp(path);
	static const char text[] = "- { " K " }\n";
	static const mode_t good[] = { 0600, 0400 }, bad[] = { 0640, 0604, 0660, 0644, 0666, 0610, 0601 };
	static const struct {
		mode_t mode;
		int r;
	} mounted[] = { { 0440, 0 }, { 0640, 0 }, { 0460, -22 }, { 0444, -22 } };
	struct auth_keys *keys = NULL;
	FILE *err;

	assert_true(fd >= 0 && write(fd, text, strlen(text)) > 0);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		fchmod(fd, good[i]);
		assert_int_equal(auth_keys_load(path, &keys, stderr), 0);
		auth_keys_put(keys);
	}
	memset(errors, 0, sizeof errors);
	err = fmemopen(errors, sizeof errors, "w");
	setbuf(err, NULL);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		fchmod(fd, bad[i]);
		assert_int_equal(auth_keys_load(path, &keys, err), -22);
		assert_non_null(strstr(errors, "chmod 0600"));
	}
	fchmod(fd, 0600);
	if (geteuid() == 0) {
		assert_int_equal(fchown(fd, 12345, 0), 0);
		assert_int_equal(auth_keys_load(path, &keys, err), -22);
		assert_non_null(strstr(errors, "belongs to user 12345"));
		/* A mounted secret: root's, and a group's to read. */
		assert_int_equal(fchown(fd, 0, 12345), 0);
		assert_int_equal(setegid(12345), 0);
		assert_int_equal(seteuid(12345), 0);
		for (size_t i = 0; i < sizeof mounted / sizeof *mounted; i++) {
			assert_int_equal(seteuid(0), 0);
			fchmod(fd, mounted[i].mode);
			assert_int_equal(seteuid(12345), 0);
			assert_int_equal(auth_keys_load(path, &keys, err), mounted[i].r);
			if (mounted[i].r == 0)
				auth_keys_put(keys);
		}
		assert_int_equal(seteuid(0), 0);
		assert_int_equal(setegid(0), 0);
	}
	close(fd);
	unlink(path);
	assert_int_equal(auth_keys_load(path, &keys, err), -2);
	snprintf(fifo, sizeof fifo, "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(auth_keys_load(fifo, &keys, err), -22);
	assert_non_null(strstr(errors, "not a regular file"));
	unlink(fifo);
	assert_int_equal(auth_keys_load("/tmp", &keys, err), -22);
	fclose(err);
}

/* ---- grants ---- */

static struct identity
holder(const char *grants)
{
	char yaml[1024];
	struct auth_env env = { .region = "us-east-1", .skew_s = 900 };
	struct signer s = { "AKEY", "verysecret", "us-east-1", "s3", STAMP };
	struct rq *r =
		rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, "x-amz-date", STAMP, NULL);
	struct identity id;

	snprintf(yaml, sizeof yaml, "- { " K "%s }", grants);
	env.keys = keys_from(yaml);
	memset(&r->t, 0, sizeof r->t);
	r->t.op = OP_GET_OBJECT;
	rq_read(r);
	assert_fault(auth_check(&env, &sign(r, &s)->in, &r->t, DAY_S, &id, &r->why), FAULT_NONE);
	auth_keys_put(env.keys); /* the identity has its own */
	return id;
}

static bool
may(const struct identity *id, enum auth_right right, const char *bucket, const char *key)
{
	return auth_may(id, right, bucket, strlen(bucket), key, key ? strlen(key) : 0);
}

static void
grants(void **state)
{
	struct identity id = holder("");

	assert_true(may(&id, AUTH_READ, "b", "k") && may(&id, AUTH_WRITE, "b", "k") &&
		    may(&id, AUTH_BUCKET, "b", NULL) && may(&id, AUTH_LIST, "b", NULL));
	identity_put(&id);
	assert_false(may(&id, AUTH_READ, "b", "k"));
	id = holder(", read_only: true");
	assert_true(may(&id, AUTH_READ, "b", "k") && may(&id, AUTH_LIST, "b", ""));
	assert_false(may(&id, AUTH_WRITE, "b", "k") || may(&id, AUTH_BUCKET, "b", NULL));
	identity_put(&id);
	id = holder(", grants: [{ bucket: data, read_only: true }, { bucket: \"s-*\" }, { bucket: m, prefix: "
		    "a/ }]");
	assert_true(may(&id, AUTH_READ, "data", "k") && may(&id, AUTH_LIST, "data", ""));
	assert_false(may(&id, AUTH_WRITE, "data", "k") || may(&id, AUTH_BUCKET, "data", NULL));
	assert_false(may(&id, AUTH_READ, "data2", "k") || may(&id, AUTH_READ, "dat", "k"));
	assert_true(may(&id, AUTH_WRITE, "s-1", "k") && may(&id, AUTH_BUCKET, "s-new", NULL));
	assert_false(may(&id, AUTH_WRITE, "s", "k") || may(&id, AUTH_READ, "t-1", "k"));
	assert_true(may(&id, AUTH_WRITE, "m", "a/x") && may(&id, AUTH_READ, "m", "a/"));
	assert_false(may(&id, AUTH_READ, "m", "a") || may(&id, AUTH_READ, "m", "b/x") ||
		     may(&id, AUTH_BUCKET, "m", NULL));
	assert_true(may(&id, AUTH_LIST, "m", NULL) && may(&id, AUTH_LIST, "m", "a/b"));
	assert_false(may(&id, AUTH_LIST, "m", "") || may(&id, AUTH_LIST, "x", NULL));
	identity_put(&id);
	identity_init(&id);
	assert_false(may(&id, AUTH_READ, "b", "k") || may(&id, AUTH_LIST, "b", NULL));
	id.anonymous = true;
	assert_true(may(&id, AUTH_READ, "b", "k") && may(&id, AUTH_BUCKET, "b", NULL));
}

static uint64_t
last_used(const struct auth_keys *keys, int i)
{
	struct auth_key_info info;

	assert_true(auth_keys_info(keys, i, &info));
	return info.last_used_s;
}

/* The last use is that of the secret, also after reloads, and while requests use the keys from before. */
static void
last_use(void **state)
{
	static const char text[] =
		"- { " K ", session_token: t }\n- { " K " }\n- { access_key: AKEY, "
		"secret_key: othersecret }\n- { access_key: BKEY, secret_key: verysecret }\n";
	static const char other[] =
		"- { access_key: BKEY, secret_key: newersecret }\n- { " K ", read_only: true }\n";
	struct identity id = holder("");
	struct auth_keys *one, *two, *three;

	assert_int_equal(last_used(id.keys, 0), DAY_S);
	assert_int_equal(parse(text, &one), 0);
	auth_keys_inherit(one, id.keys);
	assert_int_equal(last_used(one, 1), DAY_S);
	for (int i = 0; i < 4; i++)
		assert_true(i == 1 || last_used(one, i) == 0);
	identity_put(&id);
	assert_int_equal(parse(other, &two), 0);
	auth_keys_inherit(two, one);
	assert_int_equal(last_used(two, 0), DAY_S);
	assert_int_equal(last_used(two, 1), 0);
	/* Of a request that began before the reload; an earlier second changes nothing. */
	usage_mark(&one->entry[1], DAY_S + 5);
	usage_mark(&one->entry[1], DAY_S + 4);
	assert_int_equal(last_used(two, 0), DAY_S + 5);
	auth_keys_put(one);
	assert_int_equal(parse(text, &three), 0);
	auth_keys_inherit(three, two);
	auth_keys_put(two);
	assert_int_equal(last_used(three, 1), DAY_S + 5);
	auth_keys_inherit(three, NULL);
	auth_keys_inherit(NULL, three);
	auth_keys_put(three);
}

static enum fault
why_not(const struct identity *id, enum auth_right right, const char *bucket, const char *key)
{
	assert_false(may(id, right, bucket, key));
	return auth_denial(id, right, bucket, strlen(bucket), key, key ? strlen(key) : 0);
}

/* claim TM47: what a key may not delete or change; where grants overlap, one that allows it is enough. */
static void
conditions(void **state)
{
	struct identity id = holder(", no_delete: true");

	assert_true(may(&id, AUTH_WRITE, "b", "k") && may(&id, AUTH_REPLACE, "b", "k") &&
		    may(&id, AUTH_BUCKET, "b", NULL));
	assert_fault(why_not(&id, AUTH_DELETE, "b", "k"), FAULT_NO_DELETE);
	assert_fault(why_not(&id, AUTH_DELETE_BUCKET, "b", NULL), FAULT_NO_DELETE);
	identity_put(&id);
	id = holder(", no_overwrite: true");
	assert_true(may(&id, AUTH_WRITE, "b", "k") && may(&id, AUTH_DELETE, "b", "k") &&
		    may(&id, AUTH_DELETE_BUCKET, "b", NULL));
	assert_fault(why_not(&id, AUTH_REPLACE, "b", "k"), FAULT_NO_OVERWRITE);
	identity_put(&id);
	id = holder(", read_only: true, no_delete: true, no_overwrite: true");
	assert_true(may(&id, AUTH_READ, "b", "k"));
	assert_fault(why_not(&id, AUTH_DELETE, "b", "k"), FAULT_ACCESS_DENIED);
	assert_fault(why_not(&id, AUTH_REPLACE, "b", "k"), FAULT_ACCESS_DENIED);
	identity_put(&id);
	id = holder(
		", grants: [{ bucket: b, no_delete: true, no_overwrite: true }, { bucket: b, prefix: tmp/ }, "
		"{ bucket: c, read_only: true }]");
	assert_fault(why_not(&id, AUTH_DELETE, "b", "k"), FAULT_NO_DELETE);
	assert_fault(why_not(&id, AUTH_REPLACE, "b", "k"), FAULT_NO_OVERWRITE);
	assert_true(may(&id, AUTH_DELETE, "b", "tmp/k") && may(&id, AUTH_REPLACE, "b", "tmp/k"));
	assert_fault(why_not(&id, AUTH_DELETE_BUCKET, "b", NULL), FAULT_NO_DELETE);
	assert_fault(why_not(&id, AUTH_DELETE, "c", "k"), FAULT_ACCESS_DENIED);
	assert_fault(why_not(&id, AUTH_REPLACE, "d", "k"), FAULT_ACCESS_DENIED);
	identity_put(&id);
	identity_init(&id);
	id.anonymous = true;
	assert_true(may(&id, AUTH_DELETE, "b", "k") && may(&id, AUTH_REPLACE, "b", "k"));
}

static void
expect_parse(const char *grant, const char *wrong)
{
	char text[256], *says = NULL;
	struct auth_keys *keys = NULL;
	size_t len;
	FILE *out = open_memstream(&says, &len);
	int r;

	snprintf(text, sizeof text, "- { access_key: AKQ, secret_key: verysecret, grants: [{ %s }] }", grant);
	r = auth_keys_parse(text, strlen(text), "keys", &keys, out);
	fclose(out);
	assert_int_equal(r, wrong ? -EINVAL : 0);
	if (wrong)
		assert_non_null(strstr(says, wrong));
	auth_keys_put(keys);
	free(says);
}

/* What a grant's buckets may hold. */
static void
quotas(void **state)
{
	static const char text[] =
		"- { access_key: AKQ, secret_key: verysecret, grants: [{ bucket: a-*, max_bytes: 1.5GiB, "
		"max_objects: 0, max_buckets: 7 }, { bucket: b, max_uploads: 12 }, { bucket: c }] }";
	struct auth_keys *keys;
	struct auth_key_info info;

	assert_int_equal(auth_keys_parse(text, strlen(text), "keys", &keys, stderr), 0);
	assert_true(auth_keys_info(keys, 0, &info) && info.grant_nr == 3);
	assert_true(info.grant[0].max_bytes == 1610612736 && info.grant[0].max_objects == 0 &&
		    info.grant[0].max_uploads == AUTH_UNBOUNDED && info.grant[0].max_buckets == 7);
	assert_true(info.grant[1].max_uploads == 12 && info.grant[2].max_bytes == AUTH_UNBOUNDED &&
		    info.grant[1].max_buckets == AUTH_UNBOUNDED);
	auth_keys_put(keys);
	expect_parse("bucket: b, max_bytes: 1GB", "[0].grants[0].max_bytes: expected a size");
	expect_parse("bucket: b, max_objects: 1KiB", "max_objects: expected a number");
	expect_parse("bucket: b, max_objects: -1", "max_objects: expected a number");
	expect_parse("bucket: b, max_bytes: 4194305TiB", "expected a size");
	expect_parse("bucket: b, max_bytes: 4194304TiB", NULL);
	expect_parse("bucket: b, max_uploads: 1, max_uploads: 2", "max_uploads: given twice");
	expect_parse("bucket: b, max_uploads: 1, prefix: p/", "not with a prefix");
	expect_parse("bucket: b*, max_buckets: 0", NULL);
	expect_parse("bucket: b*, max_buckets: ten", "[0].grants[0].max_buckets: expected a number");
	expect_parse("bucket: b*, max_buckets: 1KiB", "max_buckets: expected a number");
	expect_parse("bucket: b*, max_buckets: 1, max_buckets: 2", "max_buckets: given twice");
	expect_parse("bucket: b*, max_buckets: [1]", "max_buckets: expected one value");
	expect_parse("bucket: b*, max_buckets: 3, prefix: p/", "not with a prefix");
	expect_parse("bucket: b, max_buckets: 3", "max_buckets counts the buckets of a pattern");
	expect_parse("bucket: b, max_uploads: 1234567890123456789012345678901234567890", "expected a number");
}

/* What any operation may be about: the object k in bkt, from there too where it is copied. */
static struct target *
object_target(void)
{
	static struct copy_source copy = { .bucket = "bkt", .bucket_len = 3 };
	static struct list_query list;
	static struct target t;

	t = (struct target){ .copy = &copy, .list = &list };
	strcpy(t.bucket, "bkt");
	t.bucket_len = 3;
	strcpy(t.key, "k");
	t.key_len = 1;
	return &t;
}

/* Each operation that removes or changes what is there is closed by its condition, and no other; what makes objects is
 * judged by the store. */
static void
operations_of_conditions(void **state)
{
	struct identity keeper = holder(", no_delete: true"), writer = holder(", no_overwrite: true");
	struct target *t = object_target();

	for (int op = OP_NONE + 1; op < OP_NR; op++) {
		bool deletes =
			op == OP_DELETE_OBJECT || op == OP_DELETE_BUCKET || op == OP_PUT_BUCKET_LIFECYCLE;
		bool changes = op == OP_PUT_OBJECT_TAGGING || op == OP_DELETE_OBJECT_TAGGING;

		if (op == OP_POST_OBJECT) /* asked later, of who signed the form */
			continue;
		t->op = (enum op)op;
		if (auth_allows(&keeper, t) == deletes ||
		    (deletes && auth_denial_of(&keeper, t) != FAULT_NO_DELETE))
			fail_msg("%s under no_delete", op_name[op]);
		if (auth_allows(&writer, t) == changes ||
		    (changes && auth_denial_of(&writer, t) != FAULT_NO_OVERWRITE))
			fail_msg("%s under no_overwrite", op_name[op]);
	}
	identity_put(&keeper);
	identity_put(&writer);
}

/* claim TM47: where a key may be used from. */
static void
from(void **state)
{
	static const struct {
		const char *peer;
		enum fault f;
	} of[] = {
		{ "::ffff:10.1.2.3", FAULT_NONE },
		{ "::ffff:10.2.0.1", FAULT_ACCESS_DENIED },
		{ "fd00::7", FAULT_NONE },
		{ "fd01::7", FAULT_ACCESS_DENIED },
	};
	struct signer s = { "AKEY", "verysecret", "us-east-1", "s3", STAMP };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct auth_env env = { .region = "us-east-1",
				.skew_s = 900,
				.keys = keys_from("- { " K ", from: [10.1.0.0/16, \"fd00::/16\"] }") };
	struct identity id;

	for (size_t i = 0; i < sizeof of / sizeof *of + 3; i++) {
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
		enum fault want;
		struct rq *r = rq_with(s3("GET", "/bkt/obj"), "x-amz-content-sha256", EMPTY, "x-amz-date",
				       STAMP, NULL);

		memset(&r->t, 0, sizeof r->t);
		r->t.op = OP_GET_OBJECT;
		rq_read(r);
		if (i < sizeof of / sizeof *of) {
			assert_int_equal(inet_pton(AF_INET6, of[i].peer, &v6.sin6_addr), 1);
			env.peer = (const struct sockaddr *)&v6;
			want = of[i].f;
		} else if (i < sizeof of / sizeof *of + 2) {
			/* IPv4 as it is. */
			inet_pton(AF_INET, i % 2 ? "10.2.0.1" : "10.1.0.1", &v4.sin_addr);
			env.peer = (const struct sockaddr *)&v4;
			want = i % 2 ? FAULT_ACCESS_DENIED : FAULT_NONE;
		} else {
			env.peer = NULL;
			want = FAULT_ACCESS_DENIED;
		}
		assert_fault(auth_check(&env, &sign(r, &s)->in, &r->t, DAY_S, &id, &r->why), want);
		if (want == FAULT_NONE)
			identity_put(&id);
		else
			assert_non_null(strstr(r->why, "(from)"));
	}
	auth_keys_put(env.keys);
}

/* A kept signing key is used as often as its day and region are asked for, and then gives way to another one. */
static void
kept_keys(void **state)
{
	static const char *const days[] = { "20130524", "20130525", "20130526" }, *const regions[] = {
		"us-east-1", "eu-west-1", ""
	};
	struct auth_keys *keys = keys_from("- { " K " }");
	struct auth_entry *e = &keys->entry[0];
	union signing_words derived, kept;
	uint8_t want[32], mac[32];

	for (int i = 0; i < 9; i++) {
		struct span region = span_of(regions[i % 3]);

		assert_false(signing_key(e, days[i / 3], region, &derived));
		assert_false(signing_key(e, days[i / 3], region, &kept));
		signing_key_keep(e, &derived);
		for (int again = 0; again < 3; again++) {
			memset(&kept, again, sizeof kept);
			assert_true(signing_key(e, days[i / 3], region, &kept));
			assert_memory_equal(&kept, &derived, sizeof kept);
			hmac256_of(kept.k.key, 32, days, (size_t)again, want);
			hmac256(&kept.k.hmac, days, (size_t)again, mac);
			assert_memory_equal(mac, want, 32);
		}
	}
	/* The last even and the last odd day. */
	assert_true(signing_key(e, days[1], span_of(""), &kept));
	assert_true(signing_key(e, days[2], span_of(""), &kept));
	assert_false(signing_key(e, days[0], span_of(""), &kept));
	assert_false(signing_key(e, days[2], span_of("us-east-1"), &kept));
	auth_keys_put(keys);
}

/* Reading rights open no operation that writes, whichever there are. */
static void
every_operation(void **state)
{
	struct identity ro = holder(", read_only: true"),
			reader = holder(", grants: [{ bucket: bkt, read_only: true }]"),
			other = holder(", grants: [{ bucket: elsewhere }]");
	struct target *t = object_target();

	for (int op = OP_NONE + 1; op < OP_NR; op++) {
		/* Asked again for what they name. */
		bool later = op_info[op].right == RIGHT_ANYBODY || op == OP_LIST_BUCKETS;

		t->op = (enum op)op;
		if (!later)
			assert_false(auth_allows(&other, t));
		if (!later && op != OP_DELETE_OBJECTS && op_info[op].writes) {
			if (auth_allows(&ro, t) || auth_allows(&reader, t))
				fail_msg("%s is open to a reader", op_name[op]);
		} else if (!auth_allows(&ro, t)) {
			fail_msg("%s is closed to a reader", op_name[op]);
		}
	}
	identity_put(&ro);
	identity_put(&reader);
	identity_put(&other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_files),
		cmocka_unit_test(good_files),
		cmocka_unit_test(labels),
		cmocka_unit_test(gids),
		cmocka_unit_test(modes),
		cmocka_unit_test(grants),
		cmocka_unit_test(last_use),
		cmocka_unit_test(every_operation),
		cmocka_unit_test(conditions),
		cmocka_unit_test(quotas),
		cmocka_unit_test(operations_of_conditions),
		cmocka_unit_test(from),
		cmocka_unit_test(kept_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
