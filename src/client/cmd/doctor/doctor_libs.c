/* SPDX-License-Identifier: Apache-2.0 */
/* gantry doctor, libraries: which libcuobjclient a program that is written to cuObject would get. */
#include "client/cmd/doctor/doctor.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libcuobjclient.so.1"

/* In a process of its own: a foreign library's constructors run there.  Writes "ours PATH", "other PATH", "none" or
 * "broken WHY". */
static void
look(FILE *to)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map = NULL;
	const char *why;

	if (!library) {
		why = dlerror();
		/* The loader's own words for a library that is in none of its folders. */
		if (strstr(why, LIBRARY ": cannot open shared object file: No such file"))
			fputs("none", to);
		else
			fprintf(to, "broken %s", why);
	} else if (dlinfo(library, RTLD_DI_LINKMAP, &map) < 0) {
		fprintf(to, "broken %s", dlerror());
	} else {
		/* Ours, and no other, needs libgantry. */
		fprintf(to, "%s %s", dlsym(library, "gantry_open_shared") ? "ours" : "other", map->l_name);
	}
	fclose(to);
	_exit(0);
}

void
doctor_libs(struct doctor *d)
{
	char text[PATH_MAX + 64] = "", *path;
	int fd[2], status;
	ssize_t n;
	pid_t pid;

	if (pipe(fd) < 0)
		return;
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(fd[0]);
		look(fdopen(fd[1], "w"));
	}
	close(fd[1]);
	for (size_t at = 0; pid > 0 && (n = read(fd[0], text + at, sizeof text - 1 - at)) > 0;
	     at += (size_t)n)
		;
	close(fd[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	path = strchr(text, ' ');
	path = path ? path + 1 : text;
	if (!strncmp(text, "ours ", 5))
		doctor_say(d, FOUND_OK, "cuObject", "programs get Gantry's " LIBRARY ": %s", path);
	else if (!strncmp(text, "other ", 6))
		doctor_say(d, FOUND_NOTE, "cuObject",
			   "programs get a " LIBRARY
			   " that is not Gantry's: %s; with-gantry-cuobject runs them on Gantry's",
			   path);
	else if (!strcmp(text, "none"))
		doctor_say(d, FOUND_OK, "cuObject",
			   "no " LIBRARY
			   " in the loader's folders: with-gantry-cuobject runs programs on Gantry's");
	else
		doctor_say(d, FOUND_NOTE, "cuObject", "programs get a " LIBRARY " that cannot be loaded: %s",
			   *text ? path : "its loading ended the process");
}
