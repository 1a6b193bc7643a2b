/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA-256 by the test cases of RFC 4231: sha256.c. */
#include "auth/sha256.h"

#include "base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
published(void **state)
{
	static const struct {
		int byte; /* each byte of the key; 0: the bytes are 1, 2, 3 ...; -1: "Jefe" */
		size_t key_len;
		const char *text; /* NULL: 50 bytes of the value `fill` */
		int fill;
		const char *mac;
	} cases[] = {
		{ 0x0b, 20, "Hi There", 0,
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ -1, 4, "what do ya want for nothing?", 0,
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ 0xaa, 20, NULL, 0xdd, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
		{ 0, 25, NULL, 0xcd, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
		{ 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 0,
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ 0xaa, 131,
		  "This is a test using a larger than block-size key and a larger than block-size data. The "
		  "key "
		  "needs to be hashed before being used by the HMAC algorithm.",
		  0, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char key[131] = "Jefe", text[200];
		size_t len = cases[i].text ? strlen(cases[i].text) : 50;
		struct hmac256_key k;
		uint8_t want[32], mac[32];

		for (size_t n = 0; n < cases[i].key_len && cases[i].byte >= 0; n++)
			key[n] = (char)(cases[i].byte ? (size_t)cases[i].byte : n + 1);
		memset(text, cases[i].fill, sizeof text);
		if (cases[i].text)
			memcpy(text, cases[i].text, len);
		assert_int_equal(hex_bytes(cases[i].mac, want, 32), 0);
		hmac256_of(key, cases[i].key_len, text, len, mac);
		assert_memory_equal(mac, want, 32);
		/* A key is as good after other texts. */
		hmac256_key(&k, key, cases[i].key_len);
		for (size_t other = 0; other < sizeof text; other++) {
			hmac256(&k, text, other, mac);
			assert_int_equal(memcmp(mac, want, 32) == 0, other == len);
		}
		hmac256(&k, text, len, mac);
		assert_memory_equal(mac, want, 32);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(published) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
