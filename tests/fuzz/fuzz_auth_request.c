/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed requests: "METHOD TARGET" and "name: value" lines, as of dialect_parse.  Nobody who does not know the
 * secret may get in, whatever the Authorization header or the query say; the published example is in the
 * corpus, and is the only thing that may pass.
 *
 * What fails for nothing but its signature is then signed, by what the server itself takes for the request,
 * and let in (or refused for what the key may); with a bit of the signature turned it is not.  A method FORM
 * takes the lines for the fields of a signed form.  A first line "late" is a week later.
 *
 * Whatever the spelling of the target, its canonical form is hashed as it was when targets were hashed as
 * they came: the hash of then is kept here.
 */
#include "auth/auth_int.h"
#include "base/hex.h"

#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define FIELDS 40

static const char keys_text[] =
	"- { access_key: AKIAIOSFODNN7EXAMPLE, secret_key: \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\" }\n"
	"- { access_key: AKIAIOSFODNN7EXAMPLE, secret_key: another-secret, session_token: tok }\n"
	"- { access_key: AKOLD, secret_key: another-secret, expires: 2012-01-01T00:00:00Z }\n"
	"- { access_key: AKTOK, secret_key: another-secret, session_token: tok, expires: "
	"2012-01-01T00:00:00Z }\n"
	"- access_key: AKSOME\n"
	"  secret_key: another-secret\n"
	"  grants: [ { bucket: examplebucket, prefix: test }, { bucket: \"log*\", read_only: true } ]\n"
	"- { access_key: AKREAD, secret_key: another-secret, read_only: true }\n";

/* Its signatures: whoever has not changed what they cover may come in with them. */
static const char *const published[] = {
	"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
	"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
	"aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
	"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
	/* of version 2 */
	"OHIi8QLg73TD5DXFFbUex1YqCwc",
	"qs4LPBupWoThLlMKJarDyTiVTTk",
	"4QWH4O9CWtowYUW+X4P2gZ/6fNc=",
};

static struct auth_keys *keys;
static struct auth_replay *seen;

static void
must_be_sound(const struct dialect_in *in, const struct target *t, const struct identity *id)
{
	bool may_be_nobody = op_info[t->op].right == RIGHT_ANYBODY;

	must(id->anonymous || id->entry || may_be_nobody);
	must(in->listen->anonymous || id->entry || may_be_nobody);
	must(!id->entry == !id->keys);
	/* Whoever may read alone may write nothing. */
	must(!id->entry || !id->entry->read_only || !auth_may(id, AUTH_WRITE, "bkt", 3, "a", 1));
	(void)auth_allows(id, t);
}

/* The text of a signature in `where`; NULL: it is not there, perhaps as it is written in another way. */
static char *
find_hex(const char *where, const uint8_t signature[32])
{
	char hex[65];

	hex_write(hex, signature, 32);
	hex[64] = 0;
	return strstr((char *)(uintptr_t)where, hex);
}

static char *
signature_in(const struct uri *uri)
{
	for (int i = 0; i < uri->param_nr; i++) {
		if (span_is(uri_name(uri, i), "X-Amz-Signature"))
			return (char *)(uintptr_t)uri_value(uri, i).p;
	}
	return NULL;
}

/* With a key and what it signs: the text in the request becomes what the key gives. */
static void
put_signature(char *text, const struct auth_entry *e, const struct sigv4 *s, const void *what,
	      size_t what_len)
{
	uint8_t key[32], out[32];

	/* Without the cache of derived keys, and then with it. */
	hmac256_of(e->secret, e->secret_len, s->stamp, 8, key);
	hmac256_of(key, 32, s->region.p, s->region.len, key);
	hmac256_of(key, 32, "s3", 2, key);
	hmac256_of(key, 32, "aws4_request", 12, key);
	hmac256_of(key, 32, what, what_len, out);
	hex_write(text, out, 32);
}

/* ---- the canonical request of a canonical target, as it was made of its bytes ---- */

struct old_param {
	struct span name, value;
};

static int
old_compare(struct span a, struct span b)
{
	int c = memcmp(a.p, b.p, a.len < b.len ? a.len : b.len);

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

static void
old_query(struct sha256 *h, struct span query, bool presigned)
{
	struct old_param p[DIALECT_PARAMS_MAX];
	int nr = 0;

	while (query.len) {
		struct span value = span_cut(&query, '&'), name = span_cut(&value, '=');
		int i;

		if (presigned && span_is(name, "X-Amz-Signature"))
			continue;
		must(nr < DIALECT_PARAMS_MAX);
		for (i = nr++; i > 0; i--) {
			int c = old_compare(p[i - 1].name, name);

			if (c < 0 || (c == 0 && old_compare(p[i - 1].value, value) <= 0))
				break;
			p[i] = p[i - 1];
		}
		p[i] = (struct old_param){ name, value };
	}
	for (int i = 0; i < nr; i++) {
		sha256_add(h, "&", i > 0);
		sha256_add(h, p[i].name.p, p[i].name.len);
		sha256_add(h, "=", 1);
		sha256_add(h, p[i].value.p, p[i].value.len);
	}
}

static void
old_value(struct sha256 *h, struct span v)
{
	size_t from = 0;

	for (size_t i = 1; i < v.len; i++) {
		if (v.p[i] != ' ' || v.p[i - 1] != ' ')
			continue;
		sha256_add(h, v.p + from, i - from);
		while (i + 1 < v.len && v.p[i + 1] == ' ')
			i++;
		from = i + 1;
	}
	sha256_add(h, v.p + from, v.len - from);
}

static void
old_headers(struct sha256 *h, const struct dialect_in *in, struct span list)
{
	while (list.len) {
		struct span name = span_cut(&list, ';');
		const char *sep = ":";

		sha256_add(h, name.p, name.len);
		for (int i = 0; i < in->field_nr; i++) {
			const struct field *f = &in->fields[i];

			if (f->name_len != name.len || strncasecmp(f->name, name.p, name.len) != 0)
				continue;
			sha256_add(h, sep, 1);
			sep = ",";
			old_value(h, field_text(f));
		}
		/* None was sent: canon_check_headers() has found it in the query. */
		for (int i = 0; *sep == ':' && i < in->uri->param_nr; i++) {
			if (uri_name(in->uri, i).len != name.len ||
			    strncasecmp(uri_name(in->uri, i).p, name.p, name.len) != 0)
				continue;
			sha256_add(h, sep, 1);
			sep = ",";
			old_value(h, uri_value(in->uri, i));
		}
		sha256_add(h, "\n", 1);
	}
	sha256_add(h, "\n", 1);
}

static size_t
spell(char *out, struct span s, bool keep_slash)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		bool plain = isalnum((unsigned char)s.p[i]) || (s.p[i] && strchr("-._~", s.p[i])) ||
			     (s.p[i] == '/' && keep_slash);

		n += (size_t)sprintf(out + n, plain && (unsigned char)s.p[i] < 0x80 ? "%c" : "%%%02X",
				     (unsigned char)s.p[i]);
	}
	return n;
}

static void
must_hash_as_before(const struct dialect_in *in, const struct sigv4 *s, struct span payload,
		    const uint8_t hash[32])
{
	static char path[3 * DIALECT_TARGET_MAX + 1], query[3 * DIALECT_TARGET_MAX + 2 * DIALECT_PARAMS_MAX];
	size_t path_len = spell(path, in->uri->path, true), query_len = 0;
	struct sha256 h;
	uint8_t then[32];

	/* In the opposite order. */
	for (int i = in->uri->param_nr - 1; i >= 0; i--) {
		query_len += spell(query + query_len, uri_name(in->uri, i), false);
		query[query_len++] = '=';
		query_len += spell(query + query_len, uri_value(in->uri, i), false);
		query[query_len++] = '&';
	}
	query_len -= query_len > 0;
	sha256_begin(&h);
	sha256_add(&h, in->method, strlen(in->method));
	sha256_add(&h, "\n", 1);
	sha256_add(&h, path, path_len);
	sha256_add(&h, "\n", 1);
	old_query(&h, (struct span){ query, query_len }, s->presigned);
	sha256_add(&h, "\n", 1);
	old_headers(&h, in, s->signed_headers);
	sha256_add(&h, s->signed_headers.p, s->signed_headers.len);
	sha256_add(&h, "\n", 1);
	sha256_add(&h, payload.p, payload.len);
	sha256_end(&h, then);
	must(memcmp(then, hash, sizeof then) == 0);
}

static size_t
string_to_sign(const struct dialect_in *in, const struct sigv4 *s, char *out, size_t cap)
{
	const struct field *f = dialect_payload_hash(in, NULL);
	struct span payload = f ? field_text(f) : span_of("UNSIGNED-PAYLOAD");
	uint8_t hash[32];
	char hex[64];

	/* As of curl. */
	if (!f && !s->presigned)
		payload = span_of("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	canon_hash(in, s, payload, hash);
	must_hash_as_before(in, s, payload, hash);
	hex_write(hex, hash, 32);
	return (size_t)snprintf(out, cap, "AWS4-HMAC-SHA256\n%s\n%s\n%.64s", s->stamp, s->scope, hex);
}

static void
must_be_let_in(struct auth_env *env, const struct dialect_in *in, struct target *t, uint64_t now_s,
	       char *text)
{
	static const struct sockaddr_in other = { .sin_family = AF_INET, .sin_addr = { 1 } };
	struct identity id;
	const char *why = NULL;
	enum fault f;

	env->replay = seen;
	env->replay_mode = REPLAY_REJECT;
	f = auth_check(env, in, t, now_s, &id, &why);
	must(why);
	if (f == FAULT_NONE) {
		must(id.entry && !id.anonymous);
		must_be_sound(in, t, &id);
		identity_put(&id);
		/* Whoever has seen it may not send it from somewhere else. */
		env->peer = (const struct sockaddr *)(const void *)&other;
		f = auth_check(env, in, t, now_s, &id, &why);
		must((f == FAULT_ACCESS_DENIED || (f == FAULT_REPLAYED && t->wire != WIRE_NONE)) &&
		     !id.entry);
		env->peer = NULL;
	} else {
		/* A key that is over, or a token that is missing; the same signature twice is from the same
		 * address. */
		must(f == FAULT_ACCESS_KEY || f == FAULT_SECURITY_TOKEN || f == FAULT_EXPIRED_TOKEN);
	}
	text[40] = text[40] == '0' ? '1' : '0';
	must(auth_check(env, in, t, now_s, &id, &why) == FAULT_SIGNATURE);
	env->replay = NULL;
}

/* It failed for its signature alone. */
static void
sign_and_check(struct auth_env *env, const struct dialect_in *in, struct target *t, uint64_t now_s)
{
	static struct sigv4 s;
	const struct field *f = dialect_field(in, "authorization", NULL);
	struct auth_entry *e;
	const char *why;
	char text[512], again[512], *at;
	size_t len;
	int nr = 0;

	memset(&s, 0, sizeof s);
	must((f ? scan_header(in, env->region, &s, &why) : scan_query(in, env->region, &s, &why)) ==
	     FAULT_NONE);
	e = keys_find(keys, s.access_key, &nr);
	at = f ? find_hex(f->value, s.signature) : signature_in(in->uri);
	/* A header that is named and missing is said to be a signature that does not hold. */
	if (!at || canon_check_headers(in, &s, env->relax, &why) != FAULT_NONE)
		return;
	len = string_to_sign(in, &s, text, sizeof text);
	must(e && nr > 0 && len < sizeof text);
	for (int i = 0; i < nr; i++) {
		put_signature(at, &e[i], &s, text, len);
		/* What was found may have been signed itself: Authorization among SignedHeaders, or it stands
		 * in the path. */
		if (string_to_sign(in, &s, again, sizeof again) != len || memcmp(text, again, len) != 0)
			return;
		must_be_let_in(env, in, t, now_s, at);
	}
}

static void
check_one(struct auth_env *env, const struct dialect_in *in, struct target *t, uint64_t now_s,
	  const char *all)
{
	struct identity id;
	const char *why = NULL;
	char claimed[AUTH_ACCESS_KEY_MAX];
	enum fault f = auth_check(env, in, t, now_s, &id, &why);
	bool known = false;

	must(why);
	must(auth_claimed_key(in, claimed, sizeof claimed) <= sizeof claimed);
	if (f != FAULT_NONE) {
		must(*why && !id.entry && !id.keys && !id.anonymous);
		if (f == FAULT_SIGNATURE && !sigv2_concerns(env, in))
			sign_and_check(env, in, t, now_s);
		return;
	}
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		known = known || strstr(all, published[i]);
	must(!id.entry || known);
	must_be_sound(in, t, &id);
	identity_put(&id);
}

/* ---- forms ---- */

static const char *
form_field(const struct dialect_in *in, const char *name, size_t *ret_len)
{
	const struct field *f = dialect_field(in, name, NULL);

	*ret_len = f ? f->value_len : 0;
	return f ? f->value : NULL;
}

static void
check_form(struct auth_env *env, const struct dialect_in *in, uint64_t now_s, const char *all)
{
	struct auth_form form;
	struct identity id;
	struct sigv4 s = { 0 };
	struct auth_entry *e;
	const char *why = NULL;
	char *at;
	int nr = 0;

	form.policy = form_field(in, "policy", &form.policy_len);
	form.algorithm = form_field(in, "x-amz-algorithm", &form.algorithm_len);
	form.credential = form_field(in, "x-amz-credential", &form.credential_len);
	form.date = form_field(in, "x-amz-date", &form.date_len);
	form.signature = form_field(in, "x-amz-signature", &form.signature_len);
	form.security_token = form_field(in, "x-amz-security-token", &form.security_token_len);
	form.access_key = form_field(in, "awsaccesskeyid", &form.access_key_len);
	form.signature2 = form_field(in, "signature", &form.signature2_len);
	identity_init(&id);
	if (form.access_key && !form.algorithm && !form.credential) {
		enum fault f = auth_check_form(env, &form, now_s, &id, &why);

		must(f == FAULT_NONE ? id.entry && env->sigv2 && strstr(all, published[6])
				     : !id.entry && *why);
		identity_put(&id);
		return;
	}
	/* Who signs policies of forms without the secret? */
	if (auth_check_form(env, &form, now_s, &id, &why) != FAULT_SIGNATURE) {
		must(!id.entry && !id.anonymous && why && *why);
		return;
	}
	must(scan_credential((struct span){ form.credential, form.credential_len }, env->region,
			     FAULT_AUTH_QUERY, &s, &why) == FAULT_NONE);
	e = keys_find(keys, s.access_key, &nr);
	at = (char *)(uintptr_t)form.signature;
	must(e && nr > 0);
	memcpy(s.stamp, form.date, AUTH_STAMP_LEN);
	for (int i = 0; i < nr; i++) {
		enum fault f;

		put_signature(at, &e[i], &s, form.policy, form.policy_len);
		f = auth_check_form(env, &form, now_s, &id, &why);
		must(f == FAULT_NONE ? id.entry != NULL
				     : f == FAULT_ACCESS_KEY || f == FAULT_SECURITY_TOKEN ||
					       f == FAULT_EXPIRED_TOKEN);
		identity_put(&id);
		at[40] = at[40] == '0' ? '1' : '0';
		must(auth_check_form(env, &form, now_s, &id, &why) == FAULT_SIGNATURE);
	}
}

static void
begin(void)
{
	must(auth_keys_parse(keys_text, strlen(keys_text), "keys", &keys, stderr) == 0);
	must(auth_replay_new(1 << 12, &seen) == 0);
	log_set_level((enum log_level) - 1);
}

/* The parts of a target: as large as it needs them, so that a step beyond them is seen. */
static void *
part_of(void *cookie, enum target_part part)
{
	static void *parts[TARGET_LIST + 1];
	size_t len = part == TARGET_ATTRS  ? DIALECT_ATTRS_MAX
		     : part == TARGET_COPY ? sizeof(struct copy_source)
					   : sizeof(struct list_query);

	if (!parts[part])
		parts[part] = malloc(len);
	must(parts[part]);
	memset(parts[part], 0x5a, len);
	return parts[part];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct target t;
	struct conf_rdma rdma = { 0 };
	struct conf_listen listen = { .dialect = DIALECT_S3 };
	struct field fields[FIELDS];
	struct dialect_in in = {
		.listen = &listen, .rdma = &rdma, .parts = { part_of, NULL }, .fields = fields
	};
	struct auth_env env = { .region = "us-east-1", .skew_s = 900 };
	static struct uri uri;
	char *text = malloc(len + 1), *all = malloc(len + 1), *save = NULL, *line, *space, *target;
	uint64_t now_s = 1369353600;
	const char *why;

	must(text && all);
	if (!keys)
		begin();
	env.keys = keys;
	for (size_t i = 0; i < len; i++)
		text[i] = data[i] ? (char)data[i] : '?';
	text[len] = 0;
	memcpy(all, text, len + 1);
	line = strtok_r(text, "\n", &save);
	if (line && strcmp(line, "late") == 0) {
		now_s += 7 * 86400;
		line = strtok_r(NULL, "\n", &save);
	}
	space = line ? strchr(line, ' ') : NULL;
	if (space) {
		*space = 0;
		in.method = line;
		target = space + 1;
		in.uri = &uri;
		while (in.field_nr < FIELDS && (line = strtok_r(NULL, "\n", &save))) {
			char *colon = strchr(line, ':');

			if (!colon)
				continue;
			*colon++ = 0;
			fields[in.field_nr++] = (struct field){ line, colon, (uint32_t)strlen(line),
								(uint32_t)strlen(colon) };
		}
		dialect_read_target(&in, target, strlen(target), &uri);
		for (int how = 0; how < 2 && strcmp(in.method, "FORM") == 0; how++) {
			env.sigv2 = how;
			check_form(&env, &in, now_s, all);
		}
		for (int how = 0; how < 4; how++) {
			listen.anonymous = how & 1;
			env.sigv2 = how & 2;
			/* Also for requests that the dialect would have refused before. */
			(void)dialect_parse(&in, &t, &why);
			check_one(&env, &in, &t, now_s, all);
		}
	}
	free(text);
	free(all);
	return 0;
}
