/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of forms: the input is the JSON, judged against a form with a key, a type and an ignored field. */
#include "base/base64.h"
#include "s3doc/form.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

/* A field, as the parser leaves it. */
static void
add(struct form *f, const char *name, const char *value, size_t len)
{
	struct form_field *fd = &f->field[f->field_nr++];

	fd->name = (uint32_t)f->used;
	fd->name_len = (uint32_t)strlen(name);
	memcpy(f->bytes + f->used, name, fd->name_len + 1);
	f->used += fd->name_len + 1;
	fd->value = (uint32_t)f->used;
	fd->value_len = (uint32_t)len;
	memcpy(f->bytes + f->used, value, len);
	f->used += len;
	f->bytes[f->used++] = 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct target t = { .bucket = "bkt", .bucket_len = 3, .key = "user/a", .key_len = 6 };
	struct form_limits limits;
	const char *why = NULL;
	static struct form form_of;
	struct form *form = &form_of;
	char *text;
	enum fault f;

	if (len > 8192)
		return 0;
	/* Large, so not made anew each time; what it has behind its fields is nobody's. */
	form->field_nr = 0;
	form->used = 0;
	text = malloc(BASE64_LEN(len) + 1);
	must(text);
	base64_encode(data, len, text);
	add(form, "key", "user/a", 6);
	add(form, "content-type", "text/plain,text/css", 19);
	add(form, "x-ignore-me", "x", 1);
	add(form, "policy", text, BASE64_LEN(len));
	f = form_policy(form, &t, 1445412480, &limits, &why);
	must(why && (f == FAULT_NONE || f == FAULT_POST_POLICY || f == FAULT_ACCESS_DENIED));
	must(f || limits.min_bytes <= INT64_MAX);
	/* The bytes as they are, where base64 belongs. */
	form->field_nr = 3;
	form->used = form->field[3].name;
	add(form, "policy", (const char *)data, len);
	(void)form_policy(form, &t, 1445412480, &limits, &why);
	free(text);
	return 0;
}
