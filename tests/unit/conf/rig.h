/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file in a directory of its own, loaded as often as one likes; what was said of it. */
#ifndef GANTRY_TESTS_CONF_RIG_H
#define GANTRY_TESTS_CONF_RIG_H

#include "conf/conf.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD_LISTEN "listen: [{ address: \"127.0.0.1:0\", dialect: s3, anonymous: true }]\n"
#define GOOD_DISK "store: { disks: [{ path: /d0, size: 1GiB }] }\n"

/* Are the test's directory, and the configuration file in it. */
extern char dir[64], file[96];
/* Are what the last load said and made; of the next one they are others. */
extern char *errors;
extern struct conf *conf;

/* Make and remove the directory. */
int setup(void **state);
int teardown(void **state);

/* Writes a file in the directory. */
void write_file(const char *name, const char *text);

/* Load a configuration: from anywhere, from this text as the file, from the file and an override of -o. */
int load_with(const struct conf_source *src);
int load(const char *text);
int load_override(const char *text, const char *override);

/* Asserts that the file is refused, with `wanted` in what is said (behind the file's name). */
void assert_refused(const char *text, const char *wanted);
/* Asserts that the file is taken, and that nothing is said. */
void assert_good(const char *text);

/* Returns how often `what` is in the text. */
int count(const char *text, const char *what);
/* Returns conf as it is printed; the caller frees it. */
char *printed(void);

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* Takes our variables out of the environment: whoever runs this may have set some. */
void forget_environment(void);

#endif
