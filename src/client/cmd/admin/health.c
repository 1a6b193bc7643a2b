/* SPDX-License-Identifier: Apache-2.0 */
/* gantry health: the reasons why a gantryd is not well, and muting one of them for a time. */
#include "client/cmd/admin/reasons.h"
#include "client/cmd/common/admin_client.h"
#include "client/cmd/common/cmd.h"
#include "client/cmd/common/words.h"

#include <stdlib.h>
#include <string.h>

#define MUTE_MAX_S (365 * 86400ull)

void
reasons_print(FILE *out, const json_t *health)
{
	const json_t *reasons = json_object_get(health, "reasons");

	for (size_t i = 0; i < json_array_size(reasons); i++) {
		const json_t *r = json_array_get(reasons, i);
		const char *muted = json_text_at(r, "muted", NULL);

		fprintf(out, "  %s %s: %s (since %s%s%s)\n", muted ? "-" : "!", json_text_at(r, "code", "?"),
			json_text_at(r, "text", "?"), json_text_at(r, "since", "?"),
			muted ? ", muted until " : "", muted ? muted : "");
	}
}

static void
print_page(const struct cmd *c, const json_t *page)
{
	if (c->json) {
		json_dumpf(page, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (!c->quiet) {
		printf("%s\n", json_text_at(page, "status", "?"));
		reasons_print(stdout, page);
	}
}

static int
show(const struct cmd *c, const char *admin)
{
	json_t *page;
	char err[512];
	int http;
	bool serves;

	if (admin_json(admin, "/healthz", &page, &http, err, sizeof err) < 0) {
		fprintf(stderr, "gantry: %s\n", err);
		return EXIT_FAILED;
	}
	print_page(c, page);
	serves = strcmp(json_text_at(page, "status", "?"), "ok") == 0 ||
		 strcmp(json_text_at(page, "status", "?"), "degraded") == 0;
	if (c->quiet && !serves)
		reasons_print(stderr, page);
	json_decref(page);
	return serves ? EXIT_OK : EXIT_FAILED;
}

static int
mute(const struct cmd *c, const char *admin, const char *code, const char *for_text)
{
	uint64_t s = 0;
	char number[32], *body;
	json_t *o;
	int rc = EXIT_FAILED;

	if (for_text && !duration_parse(for_text, MUTE_MAX_S, &s))
		words_bad("health", "--for wants a time, 90s, 15m, 8h or 7d, of a year at most", for_text);
	snprintf(number, sizeof number, "%llu", (unsigned long long)s);
	o = json_pack("{s:s, s:s, s:s}", "action", s ? "mute" : "unmute", "code", code, "seconds", number);
	body = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (body)
		rc = admin_tell(c, admin, "health", "/control/health", body, print_page);
	else
		words_bad("health", "this is no code", NULL);
	free(body);
	json_decref(o);
	return rc;
}

int
cmd_health(struct cmd *c, const char *what, const char *code)
{
	bool is_mute = what && !strcmp(what, "mute");

	if (!what)
		return show(c, admin_name(c->admin));
	if (!is_mute && strcmp(what, "unmute") != 0)
		words_bad("health", "there are mute and unmute, or no word", what);
	if (!code || (is_mute && !c->mute_for))
		words_bad("health", is_mute ? "mute wants a CODE and --for TIME" : "unmute wants a CODE",
			  NULL);
	return mute(c, admin_name(c->admin), code, c->mute_for);
}
