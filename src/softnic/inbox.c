/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of inboxes (fab_proc.inbox), by senders and by receivers that answer. Any thread; no lock. */
#include "softnic/message.h"
#include "softnic/softnic.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool
sn_mail_post(struct fab_proc *p, uint32_t qpn)
{
	for (uint32_t i = 0; i < FAB_INBOX; i++) {
		uint32_t none = 0;

		if (!atomic_compare_exchange_strong(&p->inbox[(qpn + i) % FAB_INBOX], &none, qpn))
			continue;
		atomic_fetch_add(&p->inbox_bell, 1);
		syscall(SYS_futex, &p->inbox_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		return true;
	}

	return false;
}
