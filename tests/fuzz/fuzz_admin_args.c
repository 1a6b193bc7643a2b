/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a control call, and its query.  Whatever it holds, it is refused with a reason, or each member is a known one, given
 * once and within its bounds, and the same comes out when it is written and read again; and a bound of a quota among
 * them is a number that can be counted to, or is refused.
 */
#include "admin/admin_int.h"
#include "conf/conf.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())
#define KNOWN "bucket max_objects max_bytes max_uploads level module id next action"

static void
must_be_sound(const struct admin_args *args)
{
	must(args->nr >= 0 && args->nr <= ADMIN_ARGS_MAX);
	for (int i = 0; i < args->nr; i++) {
		const char *name = args->arg[i].name, *value = args->arg[i].value;
		uint64_t bound;

		must(memchr(name, 0, sizeof args->arg[0].name) &&
		     memchr(value, 0, sizeof args->arg[0].value));
		must(name[0] && !strchr(name, ' ') && strstr(KNOWN, name));
		must(admin_arg(args, name) == value);
		for (const char *c = value; *c; c++)
			must((unsigned char)*c >= ' ');
		if (strncmp(name, "max_", 4) == 0 &&
		    conf_bound_parse(value, !strcmp(name, "max_bytes"), &bound) == 0)
			must(bound <= (uint64_t)1 << 62);
	}
}

static void
write_text(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', f);
		putc(*text, f);
	}
	putc('"', f);
}

static void
must_come_again(const struct admin_args *args)
{
	struct admin_args again;
	const char *why = NULL;
	char *text = NULL;
	size_t text_len;
	FILE *f = open_memstream(&text, &text_len);

	must(f);
	for (int i = 0; i < args->nr; i++) {
		putc(i ? ',' : '{', f);
		write_text(f, args->arg[i].name);
		putc(':', f);
		write_text(f, args->arg[i].value);
	}
	if (args->nr)
		putc('}', f);
	must(fclose(f) == 0 && args_parse(text, KNOWN, &again, &why) == 0 && again.nr == args->nr);
	for (int i = 0; i < args->nr; i++)
		must(!strcmp(again.arg[i].name, args->arg[i].name) &&
		     !strcmp(again.arg[i].value, args->arg[i].value));
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct admin_args args;
	const char *why = NULL;
	char *body = malloc(len + 1);

	must(body);
	memcpy(body, data, len);
	body[len] = 0;
	if (args_parse(body, KNOWN, &args, &why) < 0) {
		must(why && *why);
	} else {
		must_be_sound(&args);
		must_come_again(&args);
	}
	/* The same bytes as a value of the query, and as a name. */
	args.nr = 0;
	if (args_add(&args, KNOWN, "bucket", body, &why) < 0)
		must(why && *why && args.nr == 0);
	else
		must_be_sound(&args);
	if (args_add(&args, KNOWN, body, "1", &why) == 0)
		must_be_sound(&args);
	/* A call that takes none. */
	if (args_parse(body, "", &args, &why) == 0)
		must(args.nr == 0);
	free(body);
	return 0;
}
