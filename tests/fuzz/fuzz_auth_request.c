/*
 * Signed requests: "METHOD TARGET" and "name: value" lines, as of dialect_parse.  Nobody who does not know
 * the secret may get in, whatever the Authorization header or the query say; the published example is in the
 * corpus, and is the only thing that may pass.
 */
#include "auth/auth.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define FIELDS 40

static const char keys_text[] =
	"- { access_key: AKIAIOSFODNN7EXAMPLE, secret_key: \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\" }\n"
	"- { access_key: AKIAIOSFODNN7EXAMPLE, secret_key: another-secret, session_token: tok }\n"
	"- { access_key: AKOLD, secret_key: another-secret, expires: 2012-01-01T00:00:00Z }\n";

/* Its signatures: whoever has not changed what they cover may come in with them. */
static const char *const published[] = {
	"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
	"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
	"aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
	"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
};

static void
check_one(const struct auth_env *env, const struct dialect_in *in, struct target *t, const char *all)
{
	struct identity id;
	const char *why = NULL;
	enum fault f = auth_check(env, in, t, 1369353600, &id, &why);
	bool known = false;

	must(why);
	if (f != FAULT_NONE) {
		must(*why && !id.entry && !id.keys && !id.anonymous);
		return;
	}
	must(id.anonymous || id.entry || t->op == OP_OPTIONS || t->op == OP_POST_OBJECT);
	for (size_t i = 0; i < sizeof published / sizeof *published; i++)
		known = known || strstr(all, published[i]);
	must(!id.entry || known);
	must(in->listen->anonymous || id.entry || t->op == OP_OPTIONS || t->op == OP_POST_OBJECT);
	(void)auth_allows(&id, t);
	identity_put(&id);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct auth_keys *keys;
	static struct target t;
	struct conf_rdma rdma = { 0 };
	struct conf_listen listen = { .dialect = DIALECT_S3 };
	struct field fields[FIELDS];
	struct dialect_in in = { .listen = &listen, .rdma = &rdma, .fields = fields };
	struct auth_env env = { .region = "us-east-1", .skew_s = 900 };
	char *text = malloc(len + 1), *all = malloc(len + 1), *save = NULL, *line, *space;
	const char *why;

	must(text && all);
	if (!keys)
		must(auth_keys_parse(keys_text, strlen(keys_text), "keys", &keys, stderr) == 0);
	env.keys = keys;
	for (size_t i = 0; i < len; i++)
		text[i] = data[i] ? (char)data[i] : '?';
	text[len] = 0;
	memcpy(all, text, len + 1);
	line = strtok_r(text, "\n", &save);
	space = line ? strchr(line, ' ') : NULL;
	if (space) {
		*space = 0;
		in.method = line;
		in.target = space + 1;
		in.target_len = strlen(in.target);
		while (in.field_nr < FIELDS && (line = strtok_r(NULL, "\n", &save))) {
			char *colon = strchr(line, ':');

			if (!colon)
				continue;
			*colon++ = 0;
			fields[in.field_nr++] = (struct field){ line, colon, (uint32_t)strlen(line),
								(uint32_t)strlen(colon) };
		}
		for (int anonymous = 0; anonymous < 2; anonymous++) {
			listen.anonymous = anonymous;
			/* Also for targets that the dialect would have refused before. */
			(void)dialect_parse(&in, &t, &why);
			check_one(&env, &in, &t, all);
		}
	}
	free(text);
	free(all);
	return 0;
}
