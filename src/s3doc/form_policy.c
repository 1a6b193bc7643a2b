/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy document of a form: base64 of a small JSON text, read with jansson.  See form.h.
 *
 * The author of the form has signed it, so what it says holds; what it does not speak of must not be in the
 * form.
 */
#include "s3doc/form.h"

#include "base/base64.h"
#include "base/check.h"
#include "dialect/rules.h"

#include <jansson.h>

#include <errno.h>
#include <stdlib.h>

#define DEPTH_MAX 4
#define TYPES_MAX                                                                                            \
	64 /* members of a Content-Type that is a list: a policy may have hundreds of conditions for it */

struct judging {
	const struct form *f;
	const struct target *t;
	struct form_limits *limits;
	bool covered[FORM_FIELDS_MAX];
	bool names_bucket;
};

static enum fault
broken(const char **ret_why, const char *why)
{
	return refuse(ret_why, FAULT_POST_POLICY, why);
}

static enum fault
denied(const char **ret_why, const char *why)
{
	return refuse(ret_why, FAULT_ACCESS_DENIED, why);
}

/* The value of a name in a condition; false when the form has none.  The key counts as it will be. */
static bool
value_of(struct judging *j, const char *name, struct span *ret)
{
	bool found = false;

	for (int i = 0; i < j->f->field_nr; i++) {
		const struct form_field *fd = &j->f->field[i];

		if (!span_is_nocase((struct span){ j->f->bytes + fd->name, fd->name_len }, name))
			continue;
		j->covered[i] = true;
		*ret = (struct span){ j->f->bytes + fd->value, fd->value_len };
		found = true;
	}
	if (strcasecmp(name, "bucket") == 0) {
		*ret = (struct span){ j->t->bucket, j->t->bucket_len };
		j->names_bucket = true;
		return true;
	}
	if (strcasecmp(name, "key") == 0)
		*ret = (struct span){ j->t->key, j->t->key_len };
	return found;
}

/* Content-Type is the one field whose value is a list where it has commas: each member begins so. */
static bool
all_begin(struct span list, const char *want, size_t len)
{
	bool more = true;

	for (int i = 0; more; i++) {
		struct span one;

		if (i == TYPES_MAX)
			return false;
		more = list.len && memchr(list.p, ',', list.len);
		one = span_trim(span_cut(&list, ','));
		if (one.len < len || memcmp(one.p, want, len) != 0)
			return false;
	}
	return true;
}

static bool
meets(const char *name, struct span have, const char *want, size_t len, bool prefix)
{
	if (!prefix)
		return have.len == len && memcmp(have.p, want, len) == 0;
	if (strcasecmp(name, "content-type") == 0)
		return all_begin(have, want, len);
	return have.len >= len && memcmp(have.p, want, len) == 0;
}

static enum fault
judge_match(struct judging *j, const char *name, const json_t *value, bool prefix, const char **ret_why)
{
	struct span have = { "", 0 };
	const char *want = json_string_value(value);
	size_t len = json_string_length(value);
	bool there;

	if (!want)
		return broken(ret_why,
			      "A condition of the policy compares with something else than a string.");
	there = value_of(j, name, &have);
	/* A field that is not there has every empty beginning. */
	if ((!there && !prefix) || !meets(name, have, want, len, prefix))
		return denied(ret_why, "The form does not meet a condition of its policy.");
	return FAULT_NONE;
}

/* A number, or a string of its digits: settings that come out of an environment are strings. */
static int
number_of(const json_t *value, uint64_t *ret)
{
	int r = json_is_integer(value) ? 0 : -EINVAL;

	*ret = (uint64_t)json_integer_value(value);
	if (json_is_string(value))
		r = span_decimal((struct span){ json_string_value(value), json_string_length(value) }, ret);
	/* A negative one is too large. */
	return r < 0 || *ret > INT64_MAX ? -EINVAL : 0;
}

static enum fault
judge_range(struct judging *j, const json_t *low, const json_t *high, const char **ret_why)
{
	uint64_t min, max;

	if (number_of(low, &min) < 0 || number_of(high, &max) < 0 || max < min)
		return broken(ret_why, "content-length-range of the policy is not two numbers.");
	/* Several narrow each other. */
	if (min > j->limits->min_bytes)
		j->limits->min_bytes = min;
	if (max < j->limits->max_bytes)
		j->limits->max_bytes = max;
	return FAULT_NONE;
}

static enum fault
judge_list(struct judging *j, const json_t *c, const char **ret_why)
{
	const char *op = json_string_value(json_array_get(c, 0)),
		   *name = json_string_value(json_array_get(c, 1));

	if (json_array_size(c) != 3 || !op)
		return broken(ret_why, "A condition of the policy is not a list of three.");
	if (strcasecmp(op, "content-length-range") == 0)
		return judge_range(j, json_array_get(c, 1), json_array_get(c, 2), ret_why);
	if (!name || name[0] != '$' || (strcasecmp(op, "eq") != 0 && strcasecmp(op, "starts-with") != 0))
		return broken(ret_why, "A condition of the policy is none that is known.");
	return judge_match(j, name + 1, json_array_get(c, 2), strcasecmp(op, "starts-with") == 0, ret_why);
}

static enum fault
judge_conditions(struct judging *j, json_t *conditions, const char **ret_why)
{
	enum fault f = FAULT_NONE;
	const char *name;
	json_t *c, *value;
	size_t i;

	if (!json_is_array(conditions))
		return broken(ret_why, "The policy has no list of conditions.");
	json_array_foreach(conditions, i, c)
	{
		if (json_is_object(c)) {
			json_object_foreach(c, name, value)
			{
				f = judge_match(j, name, value, false, ret_why);
				if (f != FAULT_NONE)
					return f;
			}
		} else {
			f = judge_list(j, c, ret_why);
		}
		if (f != FAULT_NONE)
			return f;
	}
	return FAULT_NONE;
}

/* Fields that no condition has to speak of. */
static bool
needs_no_cover(struct span name)
{
	static const char *const names[] = { "policy", "x-amz-signature", "signature", "awsaccesskeyid",
					     "file" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (span_is(name, names[i]))
			return true;
	}
	return name.len >= 9 && memcmp(name.p, "x-ignore-", 9) == 0;
}

static enum fault
judge(struct judging *j, const json_t *root, uint64_t now_s, const char **ret_why)
{
	const json_t *expiration = json_object_get(root, "expiration");
	uint64_t until;
	enum fault f;

	if (!json_is_object(root) || json_object_size(root) != 2)
		return broken(ret_why, "The policy is not an object of expiration and conditions.");
	if (!json_is_string(expiration) ||
	    iso_date_parse(json_string_value(expiration), json_string_length(expiration), &until) < 0)
		return broken(ret_why, "The policy has no valid expiration.");
	if (now_s >= until)
		return denied(ret_why, "The policy has expired.");
	f = judge_conditions(j, json_object_get(root, "conditions"), ret_why);
	/* It would be good for every bucket of its signer. */
	if (f == FAULT_NONE && !j->names_bucket)
		return denied(ret_why, "The policy has no condition for the bucket.");
	for (int i = 0; i < j->f->field_nr && f == FAULT_NONE; i++) {
		const struct form_field *fd = &j->f->field[i];

		if (!j->covered[i] && !needs_no_cover((struct span){ j->f->bytes + fd->name, fd->name_len }))
			return denied(ret_why, "The form has a field that its policy does not speak of.");
	}
	return f;
}

/* jansson recurses; what is nested deeper than any policy is not shown to it. */
static bool
is_shallow(const char *p, size_t len)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (quoted && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			quoted = !quoted;
		else if (!quoted && (p[i] == '{' || p[i] == '['))
			depth++;
		else if (!quoted && (p[i] == '}' || p[i] == ']'))
			depth--;
		if (depth > DEPTH_MAX)
			return false;
	}
	return true;
}

enum fault
form_policy(const struct form *f, const struct target *t, uint64_t now_s, struct form_limits *ret,
	    const char **ret_why)
{
	struct judging j = { .f = f, .t = t, .limits = ret };
	char text[FORM_BYTES_MAX], decoded[FORM_BYTES_MAX];
	size_t len, n = 0, decoded_len = 0;
	const char *policy = form_get(f, "policy", &len);
	json_t *root;
	enum fault r;

	*ret_why = "";
	*ret = (struct form_limits){ 0, UINT64_MAX };
	check(t->bucket_len > 0);
	if (!policy)
		return FAULT_NONE;
	/* Forms are edited by hand: the text may have line ends in it. */
	for (size_t i = 0; i < len; i++) {
		if (policy[i] == 0 || !strchr(" \t\r\n", policy[i]))
			text[n++] = policy[i];
	}
	if (base64_decode(text, n, decoded, sizeof decoded, &decoded_len) < 0)
		return broken(ret_why, "The policy is not base64.");
	if (!is_shallow(decoded, decoded_len))
		return broken(ret_why, "The policy is nested too deeply.");
	root = json_loadb(decoded, decoded_len, JSON_REJECT_DUPLICATES, NULL);
	if (!root)
		return broken(ret_why, "The policy is not JSON.");
	r = judge(&j, root, now_s, ret_why);
	json_decref(root);
	return r;
}
