/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recovery helper: one thread a rail (a device that hangs in the kernel must not keep another from being
 * repaired). It runs the calls that may block: state changes, destruction and creation of queue pairs.
 */
#include "rdma/rdma_int.h"

#include "base/check.h"

static void *
recovery_main(void *arg)
{
	struct rdma_rail *rail = arg;

	pthread_mutex_lock(&rail->recovery.lock);
	for (;;) {
		struct list *l = list_pop(&rail->recovery.jobs);

		if (l) {
			struct rdma_job *job = container_of(l, struct rdma_job, link);

			pthread_mutex_unlock(&rail->recovery.lock);
			job->run(job);
			pthread_mutex_lock(&rail->recovery.lock);
		} else if (rail->recovery.stop) {
			break;
		} else {
			pthread_cond_wait(&rail->recovery.more, &rail->recovery.lock);
		}
	}
	pthread_mutex_unlock(&rail->recovery.lock);
	return NULL;
}

int
recovery_start(struct rdma_rail *rail)
{
	int r;

	pthread_mutex_init(&rail->recovery.lock, NULL);
	pthread_cond_init(&rail->recovery.more, NULL);
	list_init(&rail->recovery.jobs);
	r = thread_start(&rail->recovery.thread, "gantry-recover", recovery_main, rail);
	rail->recovery.started = r == 0;
	return r;
}

void
recovery_stop(struct rdma_rail *rail)
{
	if (!rail->recovery.started)
		return;
	pthread_mutex_lock(&rail->recovery.lock);
	rail->recovery.stop = true;
	pthread_cond_signal(&rail->recovery.more);
	pthread_mutex_unlock(&rail->recovery.lock);
	pthread_join(rail->recovery.thread, NULL);
	rail->recovery.started = false;
}

void
rdma_job_post(struct rdma_rail *rail, struct rdma_job *job)
{
	pthread_mutex_lock(&rail->recovery.lock);
	list_push_tail(&rail->recovery.jobs, &job->link);
	pthread_cond_signal(&rail->recovery.more);
	pthread_mutex_unlock(&rail->recovery.lock);
}

void
rdma_job_post_first(struct rdma_rail *rail, struct rdma_job *job)
{
	pthread_mutex_lock(&rail->recovery.lock);
	list_push_head(&rail->recovery.jobs, &job->link);
	pthread_cond_signal(&rail->recovery.more);
	pthread_mutex_unlock(&rail->recovery.lock);
}
