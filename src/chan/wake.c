/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How other threads are heard.  They put what they have to say into a mailbox of our own, and one message,
 * the wake-up, into the core's: so the core's mailbox never holds a message of ours but that, and freeing a
 * chan need not wait for it.
 */
#include "chan/chan_int.h"

void
chan_wake(struct chan *ch)
{
	if (!atomic_exchange(&ch->wakeup->posted, true))
		mailbox_post(ch->mb, &ch->wakeup->msg, ch->wakeup->run);
}

void
chan_answer(struct chan *ch, struct msg *m, void (*fn)(struct msg *))
{
	mailbox_post(&ch->inbox, m, fn);
	chan_wake(ch);
	/* The core may have seen the message long ago; only now may it free the chan. */
	atomic_fetch_sub(&ch->answers_due, 1);
}
