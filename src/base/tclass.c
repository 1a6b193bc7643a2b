/* SPDX-License-Identifier: Apache-2.0 */
/* See tclass.h. */
#include "base/tclass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
tclass_parse(const char *text)
{
	const char *digits = strrchr(text, '=');
	long class = strtol(digits ? digits + 1 : text, NULL, 0);

	return class > 0 && class <= 255 ? (int)class : -1;
}

int
tclass_forced(const char *device, unsigned port)
{
	char path[160], line[64];
	int class = -1;
	FILE *f;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/tc/%u/traffic_class", device, port);
	f = fopen(path, "re");
	if (!f)
		return -1;
	/* Without one the file is empty, or says 0. */
	if (fgets(line, sizeof line, f))
		class = tclass_parse(line);
	fclose(f);
	return class;
}
