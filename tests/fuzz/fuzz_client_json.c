/* The tolerant JSON reader of libgantry, and the configuration behind it, over arbitrary bytes. */
#include "client/client_int.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int
look(void *cookie, const char *key, enum json_type type, const char *text, size_t len)
{
	size_t *sum = cookie;

	if (strlen(text) != len)
		abort();
	*sum += strlen(key) + len;
	return *sum > 100000 ? 1 : 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct config c = { 0 };
	char *copy = malloc(len + 1), err[64];
	const char *why = NULL;
	int line = 0;
	size_t sum = 0;

	/* A block of its own, so that a read behind its end is seen. */
	memcpy(copy, data, len);
	char *exact = realloc(copy, len ? len : 1);

	json_parse(exact, len, look, &sum, &line, &why);
	config_parse(exact, len, &c, err, sizeof err);
	free(exact);
	return 0;
}
