/* SPDX-License-Identifier: Apache-2.0 */
/* The window over the log, and its blocks; see log_read.h. */
#include "extent/log/log_read.h"

#include "extent/disk/disk.h"
#include "extent/disk/rules.h"
#include "extent/disk/sync.h"

#include <errno.h>
#include <string.h>

static int
read_window(struct log_reader *lr)
{
	const struct disk *d = lr->disk;
	uint64_t have = d->is_device ? d->geo.log_bytes : d->log.have;
	size_t n = lr->at >= have ? 0 : lr->at + lr->len > have ? (size_t)(have - lr->at) : lr->len;

	/* A repair extends a file that is too short with zeros. */
	memset(lr->bytes + n, 0, lr->len - n);
	return n ? sync_read(lr->r, d->log.fd, lr->bytes, n, d->log_off + lr->at) : 0;
}

int
log_window(struct log_reader *lr, uint64_t pos, size_t len, const uint8_t **ret_bytes)
{
	uint64_t left = lr->disk->geo.log_bytes - pos;
	int e;

	if (pos < lr->at || pos + len > lr->at + lr->len) {
		lr->at = pos;
		lr->len = left < lr->size ? left : lr->size;
		if (len > lr->len)
			return -EBADMSG;
		if (pos < lr->careful_until)
			lr->len = len;
		e = read_window(lr);
		if (sync_is_unreadable(e) && lr->len > len) {
			/* The bad sector may be outside of the requested bytes. */
			lr->careful_until = pos + lr->len;
			lr->len = len;
			e = read_window(lr);
		}
		if (e < 0) {
			lr->len = 0;
			return e;
		}
	}
	*ret_bytes = lr->bytes + (pos - lr->at);
	return 0;
}

int
log_open(struct log_reader *lr, uint64_t pos, const uint8_t nonce[16], struct block_head *ret_head,
	 const uint8_t **ret_bytes)
{
	uint32_t len;
	int e = log_window(lr, pos, FMT_ALIGN, ret_bytes);

	if (e < 0)
		return e;
	len = block_peek(*ret_bytes);
	if (len == 0 || len > lr->disk->geo.log_bytes - pos)
		return -ENOENT;
	e = log_window(lr, pos, len, ret_bytes);
	if (e < 0)
		return e;
	e = block_open(*ret_bytes, len, nonce, ret_head);
	if (e < 0 && !RULE_EPOCH_KEYED_OLD) {
		struct block_head own;

		/* The rule is off: an epoch block is keyed with the nonce in its own head. */
		block_claims(*ret_bytes, &own);
		e = block_open(*ret_bytes, len, own.new_nonce, ret_head);
		if (e == 0 && ret_head->kind != BLOCK_EPOCH)
			e = -EBADMSG;
	}
	return e;
}

bool
log_is_expected(const struct log_pos *at, const struct block_head *h)
{
	return h->epoch == at->epoch && h->seq == at->seq && h->lap == at->lap && h->pos == at->pos &&
	       h->prev_crc == at->prev_crc;
}

int
log_next(struct log_reader *lr, const struct log_pos *at, struct block_head *ret_head,
	 const uint8_t **ret_bytes)
{
	const struct geometry *geo = &lr->disk->geo;
	int e = at->pos + geo->block_bytes > geo->log_bytes
			? -ENOENT
			: log_open(lr, at->pos, at->nonce, ret_head, ret_bytes);

	if (e == -EBADMSG)
		return -ENOENT;
	if (e < 0)
		return e;
	if (!log_is_expected(at, ret_head))
		return -ENOENT;
	return ret_head->kind == BLOCK_EPOCH && ret_head->new_epoch <= ret_head->epoch ? -ENOENT : 0;
}
