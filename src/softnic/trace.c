/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the trace.  Called through fault.c by the thread that runs a work request.  Each process maps the
 * file that softnicctl names in the fabric when it meets the name; a mapping stays until the last work
 * request that has a record in it is over.
 */
#include "softnic/trace.h"
#include "softnic/softnic.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct sn_trace_map {
	struct trace_file *file;
	size_t size;
	uint32_t refs; /* records, and one while it is the current one */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sn_trace_map *current;
static uint32_t current_gen;

/* Under lock. */
static void
put_map(struct sn_trace_map *m)
{
	if (!m || --m->refs)
		return;
	munmap(m->file, m->size);
	free(m);
}

static struct sn_trace_map *
open_map(const char *path)
{
	struct sn_trace_map *m = calloc(1, sizeof(*m));
	int fd = m ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(struct trace_file)) {
		m->size = (size_t)st.st_size;
		m->file = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	if (m && m->file && m->file != MAP_FAILED && atomic_load(&m->file->magic) == TRACE_MAGIC &&
	    m->file->max <= (m->size - sizeof(struct trace_file)) / sizeof(struct trace_rec)) {
		m->refs = 1;
		return m;
	}
	sn_warn("the trace %s cannot be written: %s", path, fd < 0 ? strerror(errno) : "it is none");
	if (m && m->file && m->file != MAP_FAILED)
		munmap(m->file, m->size);
	free(m);

	return NULL;
}

/* Under lock: the map of the trace that is on; NULL when it cannot be had, or between two traces. */
static struct sn_trace_map *
get_map(bool *ret_between)
{
	struct fabric *f = sn_self.fab;
	uint32_t gen = atomic_load(&f->trace_gen);
	char path[sizeof(f->trace_path)];

	if (gen == current_gen)
		return current;
	put_map(current);
	current = NULL;
	current_gen = 0;
	memcpy(path, f->trace_path, sizeof(path));
	path[sizeof(path) - 1] = 0;
	*ret_between = gen % 2 || atomic_fetch_add(&f->trace_gen, 0) != gen;
	if (*ret_between)
		return NULL;
	current = open_map(path);
	current_gen = gen;

	return current;
}

static void
note_marks(struct trace_rec *r, const struct sn_qp *qp, const struct sn_wqe *w)
{
	struct fabric *f = sn_self.fab;
	const struct fab_qp *t = &f->qp[w->dctn & (FAB_QPS - 1)];
	uint32_t far = atomic_load(&t->marks);

	r->class = (uint8_t)w->to.marks;
	r->level = (uint8_t)(w->to.marks >> 8);
	r->flow_label = w->to.flow_label;
	memcpy(r->sgid, sn_port(qp->ctx)->gid[w->to.marks >> 16].raw, 16);
	if (atomic_load(&t->qpn) != w->dctn || t->dev >= FAB_DEVS)
		return;
	r->far_class = (uint8_t)far;
	r->far_level = (uint8_t)(far >> 8);
	memcpy(r->far_sgid, f->port[t->dev].gid[far >> 16].raw, 16);
}

void
sn_trace_begin(struct sn_qp *qp, const struct sn_wqe *w)
{
	struct sn_trace_map *m;
	struct trace_rec *r;
	bool between = false;
	uint64_t n;

	pthread_mutex_lock(&lock);
	m = get_map(&between);
	if (m)
		m->refs++;
	pthread_mutex_unlock(&lock);
	if (!m) {
		if (!between)
			atomic_fetch_add(&sn_self.fab->trace_missed, 1);
		return;
	}
	n = atomic_fetch_add(&m->file->next, 1);
	if (n >= m->file->max) {
		atomic_fetch_add(&m->file->lost, 1);
		pthread_mutex_lock(&lock);
		put_map(m);
		pthread_mutex_unlock(&lock);
		return;
	}
	r = &m->file->rec[n];
	r->pid = sn_self.proc->pid;
	r->qpn = qp->qpn;
	r->dctn = w->dctn;
	r->rkey = w->rkey;
	r->opcode = w->opcode;
	r->dev = (uint8_t)qp->ctx->dev->index;
	r->rule = qp->fault.rule;
	r->wr_id = w->wr_id;
	r->raddr = w->raddr;
	r->len_bytes = w->total;
	note_marks(r, qp, w);
	atomic_store_explicit(&r->state, TRACE_OPEN, memory_order_release);
	qp->rec = r;
	qp->rec_map = m;
}

void
sn_trace_copying(struct sn_qp *qp)
{
	if (qp->rec && atomic_load_explicit(&qp->rec->start_ns, memory_order_relaxed) == 0)
		atomic_store_explicit(&qp->rec->start_ns, sn_now_ns(), memory_order_relaxed);
}

/* After a step; what it did is in the record before the queue pair goes on. */
void
sn_trace_copied(struct sn_qp *qp, const struct sn_outcome *out)
{
	if (!qp->rec || !out->landed)
		return;
	atomic_store_explicit(&qp->rec->end_ns, out->now_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&qp->rec->landed_bytes, out->landed, memory_order_relaxed);
}

void
sn_trace_end(struct sn_qp *qp, uint8_t status, uint8_t vendor)
{
	struct trace_rec *r = qp->rec;
	uint64_t now;

	if (!r)
		return;
	now = sn_now_ns();
	if (atomic_load(&r->start_ns) == 0)
		atomic_store(&r->start_ns, now);
	if (atomic_load(&r->end_ns) == 0)
		atomic_store(&r->end_ns, now);
	atomic_store(&r->done_ns, now);
	r->status = status;
	r->vendor = vendor;
	atomic_store_explicit(&r->state, TRACE_DONE, memory_order_release);
	pthread_mutex_lock(&lock);
	put_map(qp->rec_map);
	pthread_mutex_unlock(&lock);
	qp->rec = NULL;
	qp->rec_map = NULL;
}

void
sn_trace_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	current = NULL;
	current_gen = 0;
}
