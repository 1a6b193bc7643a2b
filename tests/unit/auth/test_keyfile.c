/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a credentials file: what is put in and cut out, byte for byte, and what becomes of the file on the disk
 * (claim TM46). */
#include "auth/keyfile.h"

#include "auth/auth_int.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const struct key_pair pair = { "GKNEW", "newsecret" };
static const struct key_wish everything;
static char errors[4096];
static const char *cut_id; /* id of the secret that change() cuts; NULL: all of the key */

/* What comes of it, or NULL with errors filled in. */
static char *
change(const char *text, const char *cut, const struct key_wish *wish)
{
	FILE *err = fmemopen(errors, sizeof errors, "w");
	char *out = NULL;
	size_t len;
	int e;

	memset(errors, 0, sizeof errors);
	e = cut ? keyfile_cut(text, strlen(text), "keys.yaml", cut, cut_id, &out, &len, err)
		: keyfile_add(text, strlen(text), "keys.yaml", &pair, wish, &out, &len, err);
	fclose(err);
	if (e < 0)
		return NULL;
	assert_int_equal(strlen(out), len);
	return out;
}

static void
becomes(const char *text, const char *cut, const char *want)
{
	char *out = change(text, cut, &everything);

	if (!out)
		fail_msg("refused: %s", errors);
	assert_string_equal(out, want);
	free(out);
}

static void
refused(const char *text, const char *cut, const char *says)
{
	assert_null(change(text, cut, &everything));
	if (!strstr(errors, says))
		fail_msg("\"%s\" does not say \"%s\"", errors, says);
	assert_null(strstr(errors, "secret-"));
}

#define A "- access_key: AKONE\n  secret_key: secret-1\n"
#define B "- { access_key: AKTWO, secret_key: secret-2 }\n"
#define NEW "- access_key: GKNEW\n  secret_key: newsecret\n"

static void
added(void **state)
{
	becomes("", NULL, NEW);
	becomes("# nobody yet\n", NULL, "# nobody yet\n" NEW);
	becomes("# no end", NULL, "# no end\n" NEW);
	becomes(A, NULL, A NEW);
	becomes(A "  # gids: [10.0.0.0/8]\n\n# the end\n", NULL,
		A "  # gids: [10.0.0.0/8]\n\n# the end\n" NEW);
	becomes("- access_key: AKONE\n  secret_key: secret-1", NULL, A NEW);
	becomes("- access_key: AKONE\n  secret_key: secret-1 # ours", NULL,
		"- access_key: AKONE\n  secret_key: secret-1 # ours\n" NEW);
	/* Indented; characters of several bytes before it; other ends of lines. */
	becomes("# \xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\n  - access_key: AKONE\n    secret_key: secret-1\n",
		NULL,
		"# \xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\n  - access_key: AKONE\n    secret_key: secret-1\n"
		"  - access_key: GKNEW\n    secret_key: newsecret\n");
	becomes("\xef\xbb\xbf- access_key: AKONE\r\n  secret_key: secret-1\r\n", NULL,
		"\xef\xbb\xbf- access_key: AKONE\r\n  secret_key: secret-1\r\n" NEW);
	/* In a document that says where it begins and ends. */
	becomes("%YAML 1.1\n---\n" A "...\n# behind\n", NULL, "%YAML 1.1\n---\n" A NEW "...\n# behind\n");
	/* Lists in brackets. */
	becomes("[]", NULL, "- access_key: GKNEW\n  secret_key: newsecret");
	becomes("# none\n[ ] # yet\n", NULL, "# none\n- access_key: GKNEW\n  secret_key: newsecret # yet\n");
	becomes("[# one day\n]\n", NULL, "[ { access_key: GKNEW, secret_key: newsecret } # one day\n]\n");
	becomes("--- []\n", NULL, "--- [ { access_key: GKNEW, secret_key: newsecret } ]\n");
	becomes("[{ access_key: AKONE, secret_key: secret-1 }, # ours\n]\n", NULL,
		"[{ access_key: AKONE, secret_key: secret-1 }, { access_key: GKNEW, secret_key: newsecret }, "
		"# ours\n]\n");
}

static void
wishes(void **state)
{
	const char *buckets[] = { "logs", "scratch-*" }, *from[] = { "10.1.0.0/16", "fd00::/8" };
	struct key_wish w = { .bucket = buckets,
			      .bucket_nr = 2,
			      .prefix = "a \"b\"\\c/\xc3\xa9",
			      .read_only = true,
			      .no_delete = true,
			      .no_overwrite = true,
			      .from = from,
			      .from_nr = 2,
			      .expires = "2030-01-01T00:00:00Z",
			      .made = "2026-11-29T11:00:00Z",
			      .comment = "caf\xc3\xa9: \"A\" \\ #" };
	char *block = change(A, NULL, &w), *brackets = change("--- []", NULL, &w);
	struct auth_keys *keys[2];
	uint64_t s;

	assert_non_null(block);
	assert_string_equal(block, A NEW
			    "  made: \"2026-11-29T11:00:00Z\"\n  comment: \"caf\xc3\xa9: \\\"A\\\" \\\\ #\"\n"
			    "  expires: \"2030-01-01T00:00:00Z\"\n  read_only: true\n  no_delete: true\n"
			    "  no_overwrite: true\n  from: [\"10.1.0.0/16\", \"fd00::/8\"]\n  grants:\n"
			    "    - { bucket: \"logs\", prefix: \"a \\\"b\\\"\\\\c/\xc3\xa9\" }\n"
			    "    - { bucket: \"scratch-*\", prefix: \"a \\\"b\\\"\\\\c/\xc3\xa9\" }\n");
	assert_non_null(brackets);
	assert_int_equal(auth_keys_parse(block, strlen(block), "k", &keys[0], stderr), 0);
	assert_int_equal(auth_keys_parse(brackets, strlen(brackets), "k", &keys[1], stderr), 0);
	for (int i = 0; i < 2; i++) {
		struct auth_key_info info;

		assert_true(auth_keys_info(keys[i], 1 - i, &info));
		assert_false(auth_keys_info(keys[i], 2 - i, &info));
		assert_string_equal(info.access_key, "GKNEW");
		assert_true(info.read_only && info.have_expires && !info.session_token);
		assert_int_equal(info.expires_s, 1893456000);
		assert_true(info.have_made && info.made_s == 1795950000);
		assert_string_equal(info.comment, w.comment);
		assert_true(info.no_delete && info.no_overwrite && info.from_nr == 2 &&
			    info.from[0].prefix == 112);
		assert_int_equal(info.grant_nr, 2);
		assert_true(info.grant[1].any_suffix && !info.grant[0].any_suffix);
		assert_string_equal(info.grant[1].prefix, w.prefix);
		auth_keys_put(keys[i]);
	}
	free(block);
	free(brackets);
	/* A prefix alone is one in every bucket. */
	w = (struct key_wish){ .prefix = "p/" };
	block = change("", NULL, &w);
	assert_string_equal(block, NEW "  grants:\n    - { bucket: \"*\", prefix: \"p/\" }\n");
	free(block);
	assert_true(key_wish_bucket("logs-*") && key_wish_bucket("*") && !key_wish_bucket("Logs") &&
		    !key_wish_bucket(""));
	assert_true(key_wish_prefix("a b\xc3\xa9") && !key_wish_prefix("a\nb") && !key_wish_prefix("\xff"));
	assert_true(key_wish_comment("a b\xc3\xa9") && !key_wish_comment("") && !key_wish_comment("a\nb"));
	assert_true(key_wish_from("10.0.0.1") && !key_wish_from("10.0.0.0/33"));
	assert_true(key_wish_expires("2030-01-01T00:00:00Z", &s) && !key_wish_expires("tomorrow", &s));
}

static void
cut(void **state)
{
	becomes(A B, "AKTWO", A);
	becomes(A B, "AKONE", B);
	becomes("# first\n" A "\n# second\n" B "# end\n", "AKONE", "# first\n\n# second\n" B "# end\n");
	becomes("# first\n" A "\n# second\n" B "# end\n", "AKTWO", "# first\n" A "\n# second\n# end\n");
	/* What stands in the lines of the entry goes, what stands below it stays. */
	becomes("- access_key: AKONE # one\n  # inside\n  secret_key: secret-1 # two\n  # below\n" B, "AKONE",
		"  # below\n" B);
	/* Several secrets of one key. */
	becomes(A B "- access_key: AKONE\n  secret_key: secret-3", "AKONE", B);
	/* The last one. */
	becomes("# keys\n" A "# end\n", "AKONE", "# keys\n[]\n# end\n");
	becomes(A, "AKONE", "[]\n");
	/* Other ways to write an entry. */
	becomes("-\n  access_key: AKONE\n  secret_key: |-\n    secret-1\n\n" B, "AKONE", B);
	becomes("- # why\n  secret_key:\n    secret-1\n  access_key:\n    'AKONE'\n  grants:\n  - bucket: "
		"a\n    prefix:\n" B,
		"AKONE", B);
	becomes("  - access_key: AKONE\r\n    secret_key: secret-1\r\n  - access_key: AKTWO\r\n    "
		"secret_key: secret-2\r\n",
		"AKTWO", "  - access_key: AKONE\r\n    secret_key: secret-1\r\n");
	becomes("\xef\xbb\xbf" A B, "AKONE", "\xef\xbb\xbf" B);
	/* In brackets. */
	becomes("[ { access_key: AKONE, secret_key: secret-1 }, { access_key: AKTWO, secret_key: secret-2 } "
		"]",
		"AKONE", "[  { access_key: AKTWO, secret_key: secret-2 } ]");
	becomes("[{ access_key: AKONE, secret_key: secret-1 }, # one\n{ access_key: AKTWO, secret_key: "
		"secret-2 }, # two\n]",
		"AKTWO", "[{ access_key: AKONE, secret_key: secret-1 } # one\n # two\n]");
	becomes("[{ access_key: AKONE, secret_key: secret-1 }]", "AKONE", "[]");
	/* Another entry lives off this one: nothing is changed. */
	refused("- access_key: AKONE\n  secret_key: secret-1\n  grants: &g [ { bucket: a } ]\n"
		"- access_key: AKTWO\n  secret_key: secret-2\n  grants: *g\n",
		"AKONE", "keys.yaml: this cannot be changed");
	becomes("- access_key: AKONE\n  secret_key: secret-1\n  grants: &g [ { bucket: a } ]\n"
		"- access_key: AKTWO\n  secret_key: secret-2\n  grants: *g\n",
		"AKTWO", "- access_key: AKONE\n  secret_key: secret-1\n  grants: &g [ { bucket: a } ]\n");
}

/* One secret of several, by its id. */
static void
cut_one(void **state)
{
	char one[AUTH_SECRET_ID_LEN + 1], three[AUTH_SECRET_ID_LEN + 1];

	secret_id("AKONE", "secret-1", one);
	secret_id("AKONE", "secret-3", three);
	cut_id = one;
	becomes(A B "- access_key: AKONE\n  secret_key: secret-3\n", "AKONE",
		B "- access_key: AKONE\n  secret_key: secret-3\n");
	becomes(A, "AKONE", "[]\n");
	cut_id = three;
	becomes(A B "- access_key: AKONE # two\n  secret_key: secret-3\n# end\n", "AKONE", A B "# end\n");
	becomes("[{ access_key: AKONE, secret_key: secret-3 }, { access_key: AKONE, secret_key: secret-1 }]",
		"AKONE", "[ { access_key: AKONE, secret_key: secret-1 }]");
	cut_id = NULL;
}

/* ---- a second secret ---- */

#define UNTIL_S 1893456000 /* 2030-01-01 */
#define ENDS "expires: \"2030-01-01T00:00:00Z\""
#define MADE "made: \"2026-11-29T11:00:00Z\""

/* The text with a second secret for AKONE, or NULL with errors filled in. */
static char *
turn(const char *text, uint64_t until_s)
{
	FILE *err = fmemopen(errors, sizeof errors, "w");
	struct key_pair second = { "AKONE", "newsecret", "" };
	char old_id[AUTH_SECRET_ID_LEN + 1], *out = NULL;
	struct key_turn t = { &second, old_id, until_s, 1795950000 };
	size_t len;
	int e;

	secret_id("AKONE", "newsecret", second.secret_id);
	secret_id("AKONE", "secret-1", old_id);
	memset(errors, 0, sizeof errors);
	e = keyfile_turn(text, strlen(text), "keys.yaml", &t, &out, &len, err);
	fclose(err);
	if (e < 0)
		return NULL;
	assert_int_equal(strlen(out), len);
	return out;
}

static void
turns_into(const char *text, uint64_t until_s, const char *want)
{
	char *out = turn(text, until_s);

	if (!out)
		fail_msg("refused: %s", errors);
	assert_string_equal(out, want);
	free(out);
}

static void
not_turned(const char *text)
{
	assert_null(turn(text, UNTIL_S));
	if (!strstr(errors, "keys.yaml: this cannot be changed without"))
		fail_msg("%s", errors);
	assert_null(strstr(errors, "secret-"));
}

static void
turned(void **state)
{
#define ONE "- access_key: AKONE\n  "
	turns_into(A, UNTIL_S, ONE ENDS "\n  secret_key: secret-1\n" ONE MADE "\n  secret_key: newsecret\n");
	/* Without an end; and without one at the end of the file. */
	turns_into(A B, UINT64_MAX, A ONE MADE "\n  secret_key: newsecret\n" B);
	turns_into(B "- access_key: AKONE\n  secret_key: secret-1", UNTIL_S,
		   B ONE ENDS "\n  secret_key: secret-1\n" ONE MADE "\n  secret_key: newsecret");
	/* What else the entry has is in both, and so is its text; what it has of a time is replaced. */
#define MORE                                                                                                 \
	"  comment: \"caf\xc3\xa9\" # ours\n  session_token: t\n  from: [10.0.0.0/8]\n  gids: "              \
	"[10.1.0.0/16]\n"                                                                                    \
	"  grants:\n  - { bucket: b, max_bytes: 1GiB, no_delete: true }\n  - bucket: c\n    prefix: p/\n"
	turns_into("# \xe2\x82\xac\n- secret_key: 'secret-1' # \xf0\x9f\x99\x82\n  made: "
		   "2026-01-01T00:00:00Z # then\n"
		   "  access_key: AKONE\n" MORE
		   "  expires: 2031-01-01T00:00:00+01:00 # the key's\n# behind\n" B,
		   UNTIL_S,
		   "# \xe2\x82\xac\n- secret_key: 'secret-1' # \xf0\x9f\x99\x82\n  made: "
		   "2026-01-01T00:00:00Z # then\n"
		   "  access_key: AKONE\n" MORE "  " ENDS " # the key's\n"
		   "- secret_key: newsecret # \xf0\x9f\x99\x82\n  " MADE " # then\n"
		   "  access_key: AKONE\n" MORE
		   "  expires: 2031-01-01T00:00:00+01:00 # the key's\n# behind\n" B);
	/* An end that comes first stays. */
	turns_into("- { access_key: AKONE, secret_key: secret-1, expires: 2029-12-31T23:59:59Z }\n", UNTIL_S,
		   "- { access_key: AKONE, secret_key: secret-1, expires: 2029-12-31T23:59:59Z }\n"
		   "- { access_key: AKONE, " MADE
		   ", secret_key: newsecret, expires: 2029-12-31T23:59:59Z }\n");
	/* In brackets, in braces, indented, with other ends of lines. */
	turns_into("[{ access_key: AKONE, secret_key: \"secret-1\" }, # one\n{ access_key: AKTWO, "
		   "secret_key: secret-2 }]",
		   UNTIL_S,
		   "[{ access_key: AKONE, " ENDS ", secret_key: \"secret-1\" }, { access_key: AKONE, " MADE
		   ", secret_key: newsecret }, # one\n{ access_key: AKTWO, secret_key: secret-2 }]");
	turns_into("  -\n    access_key: AKONE\r\n    secret_key: secret-1\r\n", UNTIL_S,
		   "  -\n    access_key: AKONE\r\n    " ENDS "\n    secret_key: secret-1\r\n"
		   "  -\n    access_key: AKONE\r\n    " MADE "\n    secret_key: newsecret\r\n");
	/* Another secret of the key, which has ended or not, stays as it is. */
	turns_into("- { access_key: AKONE, secret_key: secret-3 }\n" A, UINT64_MAX,
		   "- { access_key: AKONE, secret_key: secret-3 }\n" A ONE MADE
		   "\n  secret_key: newsecret\n");
	/* A secret in lines of its own. */
	turns_into(ONE "secret_key: |-\n    secret-1\n" B, UNTIL_S,
		   ONE ENDS "\n  secret_key: |-\n    secret-1\n" ONE MADE "\n  secret_key: newsecret\n" B);
	/* Entries that live off others: nothing is changed. */
	not_turned("- access_key: AKONE\n  secret_key: secret-1\n  grants: &g [ { bucket: a } ]\n");
	not_turned("- { access_key: AKTWO, secret_key: &s secret-1 }\n- { access_key: AKONE, secret_key: *s "
		   "}\n");
	not_turned("- { access_key: AKONE, secret_key: secret-1, session_token: a }\n"
		   "- { access_key: AKONE, secret_key: secret-1, session_token: b }\n");
}

static void
bad_text(void **state)
{
	refused("- { access_key: AKONE, secret_key: secret-1, colour: red }\n", NULL,
		"keys.yaml:1:46: [0]: unknown key");
	refused("- { access_key: AKONE, secret_key: secret-1", NULL, "not valid YAML");
	refused("secret-1: {}\n", NULL, "expected a list");
	refused(A "--- []\n", NULL, "a second document");
	/* A document with a value that is none. */
	refused("---\n...\n", NULL, "expected a list");
	refused("- access_key: AKONE\n  secret_key: secret-1\n- access_key: GKNEW\n  secret_key: secret-2\n",
		NULL, "cannot be changed");
}

static void
not_utf8(void **state)
{
	static const char text[] = "\xff\xfe-\0 \0{\0a\0c\0c\0e\0s\0s\0_\0k\0e\0y\0:\0 \0A\0B\0C\0,\0 "
				   "\0s\0e\0c\0r\0e\0t\0_\0k\0e\0y\0:\0 \0a\0b\0c\0d\0e\0f\0g\0h\0}\0\n";
	char *out;
	size_t len;

	assert_int_equal(keyfile_add(text, sizeof text, "keys.yaml", &pair, &everything, &out, &len, stderr),
			 -EINVAL);
}

/* ---- files ---- */

static char dir[64], path[96];

static int
in_folder(void **state)
{
	strcpy(dir, "/tmp/keyfile.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/keys.yaml", dir);
	return 0;
}

static int
gone(void **state)
{
	unlink(path);
	/* Nothing else may be left. */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void
put(const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0 && fchmod(fd, mode) == 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static char *
got(void)
{
	static char text[4096];
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

static int
new_key(struct key_pair *ret)
{
	struct keyfile *f;
	int e = keyfile_open(path, true, NULL, &f, stderr);

	if (e < 0)
		return e;
	e = keyfile_new(f, &everything, ret, stderr);
	keyfile_close(f);
	return e;
}

static void
file_is_made(void **state)
{
	struct key_pair one, two;
	struct auth_keys *keys;
	struct keyfile *f;
	struct stat st;
	struct auth_key_info info;
	uint64_t before = (uint64_t)time(NULL);

	assert_int_equal(keyfile_open(path, false, NULL, &f, stderr), -ENOENT);
	assert_int_equal(new_key(&one), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(new_key(&two), 0);
	assert_int_equal(strlen(two.access_key), 20);
	assert_int_equal(strlen(two.secret), 40);
	assert_string_not_equal(one.access_key, two.access_key);
	assert_string_not_equal(one.secret, two.secret);
	/* As the daemon reads it. */
	assert_int_equal(auth_keys_load(path, &keys, stderr), 0);
	assert_int_equal(keys->nr, 2);
	assert_true(auth_keys_info(keys, 0, &info) && info.have_made && info.made_s >= before &&
		    info.made_s <= (uint64_t)time(NULL));
	auth_keys_put(keys);

	assert_int_equal(keyfile_open(path, true, NULL, &f, stderr), 0);
	assert_int_equal(keyfile_revoke(f, "GKNOBODY", NULL, stderr), -ENOENT);
	assert_int_equal(keyfile_revoke(f, one.access_key, NULL, stderr), 0);
	keyfile_close(f);
	assert_null(strstr(got(), one.access_key));
	assert_non_null(strstr(got(), two.secret));
}

static int
rotate(const char *access_key, uint64_t until_s, struct key_pair *ret, struct key_end *ret_old)
{
	FILE *err = fmemopen(errors, sizeof errors, "w");
	struct keyfile *f;
	int e;

	memset(errors, 0, sizeof errors);
	assert_int_equal(keyfile_open(path, true, NULL, &f, stderr), 0);
	e = keyfile_rotate(f, access_key, until_s, ret, ret_old, err);
	keyfile_close(f);
	fclose(err);
	assert_null(strstr(errors, "secret-"));
	return e;
}

static void
file_is_rotated(void **state)
{
	uint64_t now = (uint64_t)time(NULL);
	struct key_pair p;
	struct key_end old, none;
	struct auth_keys *keys;
	struct auth_key_info info;
	char before[4096], want[256], time_text[AUTH_TIME_BYTES];

	put(A B, 0600);
	assert_int_equal(rotate("AKNOBODY", now, &p, &old), -ENOENT);
	assert_string_equal(got(), A B);
	assert_int_equal(rotate("AKONE", now + 3600, &p, &old), 0);
	assert_string_equal(p.access_key, "AKONE");
	assert_int_equal(strlen(p.secret), 40);
	assert_true(old.ends && old.expires_s == now + 3600);
	assert_int_equal(auth_keys_load(path, &keys, stderr), 0);
	assert_int_equal(keys->nr, 3);
	assert_true(auth_keys_info(keys, 0, &info) && info.have_expires && info.expires_s == now + 3600);
	assert_string_equal(info.secret_id, old.secret_id);
	assert_true(auth_keys_info(keys, 1, &info) && !info.have_expires && info.made_s >= now);
	assert_string_equal(info.secret_id, p.secret_id);
	assert_string_equal(keys->entry[1].secret + 4, p.secret);
	auth_keys_put(keys);
	/* A third one has to wait; which one is in the way, and until when, is said. */
	strcpy(before, got());
	assert_int_equal(rotate("AKONE", now + 7200, &p, &none), -EBUSY);
	snprintf(want, sizeof want, "AKONE has several secrets already: %s until %s, ", old.secret_id,
		 auth_time_text(now + 3600, time_text));
	assert_non_null(strstr(errors, want));
	assert_non_null(strstr(errors, "when one of them has ended, or was revoked (--secret ID)"));
	assert_string_equal(got(), before);
	/* Ended ones go; an end before that of the command stays. */
	put("- { access_key: AKONE, secret_key: secret-0, expires: 2020-01-01T00:00:00Z }\n" A
	    "- { access_key: AKTWO, secret_key: secret-2, expires: 2020-01-01T00:00:00Z } # stays\n"
	    "- { access_key: AKONE, secret_key: secret-9, expires: 2021-01-01T00:00:00Z }\n",
	    0600);
	assert_int_equal(rotate("AKONE", UINT64_MAX, &p, &old), 0);
	assert_false(old.ends);
	assert_null(strstr(got(), "secret-0"));
	assert_null(strstr(got(), "secret-9"));
	assert_memory_equal(got(), A, strlen(A));
	assert_non_null(strstr(got(), "secret-2, expires: 2020-01-01T00:00:00Z } # stays\n"));
	/* None is left. */
	put("- { access_key: AKONE, secret_key: secret-1, expires: 2020-01-01T00:00:00Z }\n", 0600);
	assert_int_equal(rotate("AKONE", now, &p, &old), -EKEYEXPIRED);
	assert_non_null(strstr(errors, "AKONE has expired"));
	put("- { access_key: AKONE, secret_key: secret-1, expires: 2099-01-01T00:00:00Z }\n", 0600);
	assert_int_equal(rotate("AKONE", UINT64_MAX, &p, &old), 0);
	assert_true(old.ends && old.expires_s == 4070908800);
}

static void
file_is_kept(void **state)
{
	struct key_pair made;
	struct stat st;
	char target[128], link[96];

	/* Others could read it: not any more.  Whose it is stays. */
	put("# ours\n" A, 0644);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 12345, 12346), 0);
	assert_int_equal(new_key(&made), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	if (geteuid() == 0)
		assert_true(st.st_uid == 12345 && st.st_gid == 12346);
	assert_memory_equal(got(), "# ours\n" A "- access_key: GK", strlen("# ours\n" A "- access_key: GK"));

	/* Root's file for the group of the daemon stays readable for that. */
	if (geteuid() == 0) {
		put(A, 0640);
		assert_int_equal(chown(path, 0, 12346), 0);
		assert_int_equal(new_key(&made), 0);
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_mode == (S_IFREG | 0640) && st.st_uid == 0 && st.st_gid == 12346);
	}

	/* A symbolic link stays one. */
	snprintf(link, sizeof link, "%s/link", dir);
	assert_int_equal(symlink("keys.yaml", link), 0);
	strcpy(target, path);
	strcpy(path, link);
	assert_int_equal(new_key(&made), 0);
	strcpy(path, target);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_non_null(strstr(got(), made.access_key));
	unlink(link);

	/* What cannot be read is not written over. */
	put("verybad: {", 0600);
	assert_int_equal(new_key(&made), -EINVAL);
	assert_string_equal(got(), "verybad: {");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(new_key(&made), -EINVAL);
}

/* What somebody left who died while writing is in nobody's way, also when it is a trap. */
static void
leftovers(void **state)
{
	struct key_pair made;
	char beside[128], victim[96];
	struct stat st;

	snprintf(beside, sizeof beside, "%s/.keys.yaml.new", dir);
	snprintf(victim, sizeof victim, "%s/victim", dir);
	assert_int_equal(symlink(victim, beside), 0);
	assert_int_equal(new_key(&made), 0);
	assert_int_equal(stat(victim, &st), -1);
	assert_int_equal(lstat(beside, &st), -1);
	assert_non_null(strstr(got(), made.secret));
}

/* Many at once: every key that was told to somebody is in the file. */
static void
at_once(void **state)
{
	enum { WRITERS = 4, EACH = 8 };
	struct key_pair made[WRITERS][EACH];
	int pipes[WRITERS][2];
	struct auth_keys *keys;

	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(pipe(pipes[i]), 0);
		if (fork() == 0) {
			FILE *null = fopen("/dev/null", "w");

			for (int k = 0; k < EACH; k++) {
				struct keyfile *f;

				if (keyfile_open(path, true, NULL, &f, null) < 0 ||
				    keyfile_new(f, &everything, &made[i][k], null) < 0)
					_exit(1);
				keyfile_close(f);
			}
			_exit(write(pipes[i][1], made[i], sizeof made[i]) == sizeof made[i] ? 0 : 1);
		}
		close(pipes[i][1]);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		assert_int_equal(read(pipes[i][0], made[i], sizeof made[i]), sizeof made[i]);
		close(pipes[i][0]);
		assert_true(wait(&status) > 0 && status == 0);
	}
	assert_int_equal(auth_keys_load(path, &keys, stderr), 0);
	assert_int_equal(keys->nr, WRITERS * EACH);
	for (int i = 0; i < WRITERS * EACH; i++) {
		const struct key_pair *p = &made[0][0] + i;
		int nr;
		struct auth_entry *e = keys_find(keys, span_of(p->access_key), &nr);

		assert_non_null(e);
		assert_string_equal(e->secret + 4, p->secret);
	}
	auth_keys_put(keys);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(added),
		cmocka_unit_test(wishes),
		cmocka_unit_test(cut),
		cmocka_unit_test(cut_one),
		cmocka_unit_test(turned),
		cmocka_unit_test(bad_text),
		cmocka_unit_test(not_utf8),
		cmocka_unit_test_setup_teardown(file_is_made, in_folder, gone),
		cmocka_unit_test_setup_teardown(file_is_rotated, in_folder, gone),
		cmocka_unit_test_setup_teardown(file_is_kept, in_folder, gone),
		cmocka_unit_test_setup_teardown(leftovers, in_folder, gone),
		cmocka_unit_test_setup_teardown(at_once, in_folder, gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
