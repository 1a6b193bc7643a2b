/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scrub after a repair: --fsck --repair leaves a file in store.state_dir, and the next start begins a scrub at once, which restores
 * the copies that were lost from the whole ones on other disks. The file is removed after a complete scrub, so a restart begins again.
 */
#include "main/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/core.h"
#include "walk/scrub.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TELL_NS (50 * NS_PER_MS)

void
rescan_want(const struct conf *conf, const struct conf_source *source, FILE *out)
{
	char path[PATH_MAX];
	int fd = daemon_state_path(conf, source, "scrub", path, sizeof path) < 0
			 ? -1
			 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd >= 0)
		close(fd);
	fprintf(out,
		fd >= 0 ? "gantryd: the next start begins a scrub, which restores what another disk has "
			  "whole\n"
			: "gantryd: there is no store.state_dir: begin a scrub after the next start (POST "
			  "/control/scrub), which restores what another disk has whole\n");
}

void
rescan_look(struct daemon *d)
{
	struct cores *cores = atomic_load(&d->cores);
	struct scrub_info i = { 0 };
	char path[PATH_MAX];
	int r;

	if (d->rescan == RESCAN_OVER || !cores || atomic_load(&d->phase) != PHASE_SERVING)
		return;
	if (daemon_state_path(d->conf, d->source, "scrub", path, sizeof path) < 0 || access(path, F_OK) < 0) {
		d->rescan = RESCAN_OVER;
		return;
	}
	if (d->rescan == RESCAN_UNKNOWN) {
		r = cores_walk(cores, WALK_SCRUB, true, TELL_NS);
		if (r == 0 || r == -EALREADY) {
			log_note("a scrub begins, because the store was repaired");
			d->rescan = RESCAN_RUNS;
		}
		return;
	}
	scrub_get_info(walks_get(cores_walks(cores), WALK_SCRUB), &i);
	if (i.walks == 0)
		return;
	d->rescan = RESCAN_OVER;
	if (unlink(path) < 0)
		log_warn("%s: cannot be removed (%s): the next start begins a scrub again", path,
			 strerror(errno));
}
