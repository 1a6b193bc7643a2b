/*
 * The credentials file.  Whatever it holds, it is taken or there are errors; what was taken can be asked; and
 * no error shows a value, which may be a secret.
 */
#include "auth/auth.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define must(x) ((x) ? (void)0 : abort())

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *errors = NULL;
	size_t errors_len = 0;
	FILE *err = open_memstream(&errors, &errors_len);
	struct auth_keys *keys = NULL;
	int r;

	must(err);
	r = auth_keys_parse((const char *)data, len, "keys", &keys, err);
	fclose(err);
	if (r < 0) {
		must(!keys && errors_len > 0);
		must(!memmem(errors, errors_len, "verysecret", 10));
		for (size_t i = 0; i < errors_len; i++)
			must((unsigned char)errors[i] >= ' ' || errors[i] == '\n');
	} else {
		must(keys && auth_keys_nr(keys) > 0 && errors_len == 0);
		must(auth_keys_get(keys) == keys);
		auth_keys_put(keys);
		auth_keys_put(keys);
	}
	free(errors);
	return 0;
}
