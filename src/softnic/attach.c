/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of this process into the fabric: its slot, and the threads that it needs. On the application's thread that asks first for
 * a list of devices, and in a forked child.
 */
#include "softnic/cuda.h"
#include "softnic/message.h"
#include "softnic/softnic.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;

static void
read_comm(char comm[16])
{
	if (prctl(PR_GET_NAME, comm) < 0)
		strcpy(comm, "?");
	comm[15] = 0;
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	char buf[17] = "";
	ssize_t n = read(fd, buf, 16);

	close(fd);
	if (n > 0) {
		buf[strcspn(buf, "\n")] = 0;
		memcpy(comm, buf, 16);
		comm[15] = 0;
	}
}

static int
claim_proc(struct fabric *f)
{
	uint32_t pid = (uint32_t)getpid();

	/* Left by what this process was before an execve(). */
	for (uint32_t i = 0; i < atomic_load(&f->proc_high); i++) {
		if (f->proc[i].pid == pid && atomic_load(&f->proc[i].state) == FAB_PROC_LIVE)
			atomic_store(&f->proc[i].state, FAB_PROC_DEAD);
	}
	fab_reap(f);
	for (uint32_t i = 0; i < FAB_PROCS; i++) {
		struct fab_proc *p = &f->proc[i];

		if (atomic_load(&p->state) != FAB_PROC_FREE)
			continue;
		memset(p, 0, sizeof(*p));
		p->pid = pid;
		if (fab_start_ticks(pid, &p->start_ticks) < 0)
			return -ENOENT;
		p->serial = atomic_fetch_add(&f->serial, 1) + 1;
		read_comm(p->comm);
		atomic_store(&p->tid, pid);
		sn_self.index = i;
		sn_self.proc = p;
		atomic_store(&p->state, FAB_PROC_LIVE);
		if (atomic_load(&f->proc_high) <= i)
			atomic_store(&f->proc_high, i + 1);
		return 0;
	}
	sn_warn("the fabric is full: %d processes", FAB_PROCS);

	return -ENOSPC;
}

/* A forked child is another process: it has no engine, no watcher and no slot,
 * and gets its own when it asks. */
static void
forget_parent(void)
{
	sn_self = (struct sn_self){ .fd = -1, .forks = sn_self.forks + 1 };
	pthread_mutex_init(&attach_lock, NULL);
	sn_slots_forget();
	sn_mail_forget();
	sn_trace_forget();
	cuda_forget();
}

static int
attach_locked(void)
{
	static bool has_fork_handler;
	struct fabric *f = NULL;
	int r, fd = -1;

	r = fab_map(true, &f, &fd);
	if (r < 0)
		return r;
	if (!has_fork_handler && pthread_atfork(NULL, NULL, forget_parent) == 0)
		has_fork_handler = true;
	/* Where Yama restricts ptrace, a target must say that anybody of its user may reach it; elsewhere
	 * EINVAL. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	sn_self.fab = f;
	sn_self.fd = fd;
	flock(fd, LOCK_EX);
	r = claim_proc(f);
	flock(fd, LOCK_UN);
	if (r == 0)
		r = sn_watch_start();
	if (r < 0) {
		if (sn_self.proc)
			atomic_store(&sn_self.proc->state, FAB_PROC_DEAD);
		munmap(f, sizeof(*f));
		close(fd);
		sn_self = (struct sn_self){ .fd = -1, .forks = sn_self.forks };
	}

	return r;
}

int
sn_attach(void)
{
	int r = 0;

	pthread_mutex_lock(&attach_lock);
	if (!sn_self.proc)
		r = attach_locked();
	pthread_mutex_unlock(&attach_lock);

	return r;
}
