/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server interface of cuObject, implemented with libgantry-server. The program receives the requests of
 * its clients itself; the library moves bytes between memory of the program and the window that a client's
 * token names. gantry-cuobject(7) lists the differences from NVIDIA's library.
 *
 * Any thread may make and release registrations, views and channels at any time. Only one thread at a time
 * may use a channel; a second thread gets -EIO. The library throws no exception.
 */
#ifndef GANTRY_CUOBJSERVER_H
#define GANTRY_CUOBJSERVER_H

#include <ostream>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "cuobjtelem.h"
#include "cuobjtypes.h"
#include "protocol.h"

struct rdma_cm_id;

/* The library's data about registered memory, or about a view of registered memory. */
struct rdma_buffer;

typedef enum cuObjChannelIdState_enum {
	CHANNEL_ID_FREE = 0,
	CHANNEL_ID_ALLOCATED = 1,
	CHANNEL_ID_IN_USE = 2,
	INVALID_CHANNEL_ID = UINT16_MAX, /* result of allocateChannelId() if no channel is free */
} cuObjChannelIdState_t;

/* The ways in which a call waits for its completion by polling. */
typedef enum cuObjDelayMode {
	CUOBJ_DELAY_NONE = 0,     /* no pause between polls */
	CUOBJ_DELAY_BATCH = 1,    /* a pause after a poll without a completion */
	CUOBJ_DELAY_ENTRY = 2,    /* one pause for each completion */
	CUOBJ_DELAY_ADAPTIVE = 3, /* polls without pause for some time, then sleeps until a completion */
	CUOBJ_DELAY_INVALID = 4,
} cuObjDelayMode_t;

typedef struct cuObjScatterGatherEntry {
	void *addr;
	size_t size;
} cuObjScatterGatherEntry_t;

/* A range of bytes of a registered buffer. */
typedef struct cuObjScatterGatherEntryWithOffset {
	loff_t offset;
	size_t size;
} cuObjScatterGatherEntryWithOffset_t;

typedef struct cuObjAsyncEvent_s {
	void *async_handle;
	ssize_t status; /* status of the transfer, an enum ibv_wc_status */
} cuObjAsyncEvent_t;

struct cuObjRDMATunableParam {
	int num_dcis;                /* largest number of channels */
	unsigned cq_depth;           /* largest number of work requests of a channel on the wire */
	unsigned long dc_key;        /* DC key, which must equal that of the clients */
	int ibv_poll_max_comp_event; /* not used */
	int service_level;
	uint8_t timeout; /* time limit of one try is 4.096 us * 2^timeout */
	unsigned hop_limit;
	int pkey_index;
	int max_wr;              /* not used */
	int max_sge;             /* largest number of pieces of one operation */
	uint32_t delay_interval; /* pause between polls, ns */
	cuObjDelayMode_t delay_mode;
	/* true: a channel is reset after a failed operation; false: the channel stays unusable */
	bool qp_reset_on_failure;
	uint8_t retry_cnt;      /* number of retries, 0 to 7 */
	unsigned traffic_class; /* 0 to 255; another value is logged, and the default is used */
	int max_rd_atomic;      /* 0: automatic */
};

/* Parameters of a session, initialized with the defaults. */
class cuObjRDMATunable
{
      public:
	cuObjRDMATunable()
	{
		p.num_dcis = 128;
		p.cq_depth = 640;
		p.dc_key = 0xffeeddcc;
		p.ibv_poll_max_comp_event = 16;
		p.service_level = 0;
		p.timeout = 16;
		p.hop_limit = 64;
		p.pkey_index = 0;
		p.max_wr = 128;
		p.max_sge = 10;
		p.delay_interval = 5000;
		p.delay_mode = CUOBJ_DELAY_BATCH;
		p.qp_reset_on_failure = true;
		p.retry_cnt = 7;
		p.traffic_class = 96;
		p.max_rd_atomic = 0;
	}

	void
	setNumDcis(int n)
	{
		p.num_dcis = n;
	}
	int
	getNumDcis() const
	{
		return p.num_dcis;
	}
	void
	setCqDepth(unsigned n)
	{
		p.cq_depth = n;
	}
	unsigned
	getCqDepth() const
	{
		return p.cq_depth;
	}
	void
	setDcKey(unsigned long key)
	{
		p.dc_key = key;
	}
	unsigned long
	getDcKey() const
	{
		return p.dc_key;
	}
	void
	setIbvPollMaxCompEv(int n)
	{
		p.ibv_poll_max_comp_event = n;
	}
	int
	getIbvPollMaxCompEv() const
	{
		return p.ibv_poll_max_comp_event;
	}
	void
	setServiceLevel(int level)
	{
		p.service_level = level;
	}
	int
	getServiceLevel() const
	{
		return p.service_level;
	}
	void
	setTimeout(uint8_t timeout)
	{
		p.timeout = timeout;
	}
	uint8_t
	getTimeout() const
	{
		return p.timeout;
	}
	void
	setHopLimit(unsigned limit)
	{
		p.hop_limit = limit;
	}
	unsigned
	getHopLimit() const
	{
		return p.hop_limit;
	}
	void
	setPkeyIndex(int index)
	{
		p.pkey_index = index;
	}
	int
	getPkeyIndex() const
	{
		return p.pkey_index;
	}
	void
	setMaxWr(int n)
	{
		p.max_wr = n;
	}
	int
	getMaxWr() const
	{
		return p.max_wr;
	}
	void
	setMaxSge(int n)
	{
		p.max_sge = n;
	}
	int
	getMaxSge() const
	{
		return p.max_sge;
	}
	void
	setDelayInterval(uint32_t ns)
	{
		p.delay_interval = ns;
	}
	uint32_t
	getDelayInterval() const
	{
		return p.delay_interval;
	}
	void
	setDelayMode(cuObjDelayMode_t mode)
	{
		p.delay_mode = mode;
	}
	cuObjDelayMode_t
	getDelayMode() const
	{
		return p.delay_mode;
	}
	void
	setQPResetOnFailure(bool on)
	{
		p.qp_reset_on_failure = on;
	}
	bool
	getQPResetOnFailure() const
	{
		return p.qp_reset_on_failure;
	}
	void
	setRetryCount(uint8_t n)
	{
		p.retry_cnt = n;
	}
	uint8_t
	getRetryCount() const
	{
		return p.retry_cnt;
	}
	void
	setTrafficClass(unsigned tc)
	{
		p.traffic_class = tc;
	}
	unsigned
	getTrafficClass() const
	{
		return p.traffic_class;
	}
	void
	setMaxRdAtomic(int n)
	{
		p.max_rd_atomic = n;
	}
	int
	getMaxRdAtomic() const
	{
		return p.max_rd_atomic;
	}

      private:
	struct cuObjRDMATunableParam p;
};

/* The RDMA session of a server. Programs use the derived class cuObjServer. */
class RDMAConnection
{
      public:
	cuObjRDMATunable params;

	/* Stores the address of the session: IPv4 or IPv6, without brackets. With the address "0.0.0.0" or
	 * "::" the session uses every RDMA port of the machine. */
	RDMAConnection(const char *ip, unsigned short port);
	RDMAConnection(const RDMAConnection &) = delete;
	RDMAConnection &operator=(const RDMAConnection &) = delete;
	RDMAConnection(RDMAConnection &&) = delete;
	RDMAConnection &operator=(RDMAConnection &&) = delete;
	~RDMAConnection();

	/* Opens the session with the parameters in params. Returns 0, also if the session is open already;
	 * -1: the address is invalid, or is not an address of this machine. */
	int startRDMASession();
	void initRDMAConfigParams(cuObjRDMATunable config_params);
	/* Closes the session, and releases its channels and registrations. The program may no longer use its
	 * pointers and channel numbers, but may still pass them to the functions that release them. */
	void closeRDMASession();
	/* Does nothing, because a session has no connections. */
	void handleDisconnectEvent(struct rdma_cm_id *id);
	/* Returns the source address of an id as text; id null: the address of the server. The next call of
	 * the same thread overwrites the text. */
	char *getChannelIP(struct rdma_cm_id *id);
	/* Returns the source port of an id; id null: the port of the server. */
	int getChannelPort(struct rdma_cm_id *id);
	void getConfigTunableParam(struct cuObjRDMATunableParam *param);

      protected:
	RDMAConnection();

	void *state;
	void *reserved[8];
};

class cuObjServer : public RDMAConnection
{
      public:
	/* Makes a server and opens its session. If this fails, isConnected() returns false. */
	cuObjServer(const char *ip, unsigned short port, unsigned proto);
	cuObjServer(const char *ip, unsigned short port, unsigned proto, cuObjRDMATunable params);
	/* Makes a server without an address, which never has a session. */
	cuObjServer() = default;
	~cuObjServer();

	/* Allocates whole pages, which the program frees by free(). Returns null if size is 0, or if there
	 * is no memory. */
	void *allocHostBuffer(size_t size);
	/* Registers memory. Returns null after a failure, and logs the reason (setupTelemetry()). */
	struct rdma_buffer *registerBuffer(void *ptr, size_t size);
	/* Registers a list of at most 10 pieces of memory as one buffer. Returns null after a failure, and
	 * logs the reason (setupTelemetry()). */
	struct rdma_buffer *registerBuffer(std::vector<cuObjScatterGatherEntry_t> sglist);
	/* Makes a view of some ranges of a buffer that was registered as one piece of memory. The buffer must
	 * stay registered until the view is released by putRDMABufferFromSgList(). Returns null if a range is
	 * outside of the buffer. */
	struct rdma_buffer *getRDMABufferFromSgList(struct rdma_buffer *rdma_buffer,
						    std::vector<cuObjScatterGatherEntryWithOffset_t> sglist);
	void putRDMABufferFromSgList(struct rdma_buffer *rdma_buffer);
	/* Removes a registration. Null is allowed. */
	void deRegisterBuffer(struct rdma_buffer *rdma_buff);

	/*
	 * Moves size bytes, at most 1 GiB, from the buffer to the client (handleGetObject()), or from the
	 * client to the buffer (handlePutObject()). The client's memory begins at remote_buf_start, and must
	 * be within the window of the token rdma_descr. The buffer's bytes begin at local_offset, which must
	 * be 0 if the buffer has several pieces of memory. channel: a number from allocateChannelId().
	 * poll_delay: pause between polls in ns, in place of delay_interval.
	 *
	 * Without async_handle the call returns the number of bytes moved; with async_handle it returns 0,
	 * and poll() returns the result. Errors: -ENODEV, -EIO, -ENOMEM, -EAFNOSUPPORT. *status is written
	 * only after a completion.
	 */
	ssize_t handleGetObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
				uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
				uint32_t poll_delay, uint16_t channel = 0, uint64_t local_offset = 0,
				ibv_wc_status *status = nullptr, void *async_handle = nullptr);
	ssize_t handleGetObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
				uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
				uint16_t channel = 0, uint64_t local_offset = 0,
				ibv_wc_status *status = nullptr, void *async_handle = nullptr);
	ssize_t handlePutObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
				uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
				uint32_t poll_delay, uint16_t channel = 0, uint64_t local_offset = 0,
				ibv_wc_status *status = nullptr, void *async_handle = nullptr);
	ssize_t handlePutObject(const std::string &key, struct rdma_buffer *local_rdma_buff,
				uint64_t remote_buf_start, size_t size, const std::string &rdma_descr,
				uint16_t channel = 0, uint64_t local_offset = 0,
				ibv_wc_status *status = nullptr, void *async_handle = nullptr);

	/*
	 * Takes at most max_events completed operations that have an async_handle, and at most 16, and
	 * returns their number. Returns -EIO if an operation has failed; then the entries of `events` whose
	 * async_handle is not null are filled in, and the other entries are unchanged. Returns -ENODEV if no
	 * port can be used; -EINVAL if events is null, max_events is negative, or the channel is not
	 * allocated.
	 */
	int poll(cuObjAsyncEvent_t *events, int max_events, uint16_t channel = 0);

	/* Returns true if the session is open and one of its ports is up. */
	bool isConnected();

	/* Allocates the free channel with the lowest number. Returns INVALID_CHANNEL_ID if no channel is
	 * free. */
	uint16_t allocateChannelId();
	/* Frees a channel; ignores an id that is not allocated. Any thread may call this function. */
	void freeChannelId(uint16_t channel_id);

	/* Starts to write log lines to a stream, until shutdownTelemetry() returns; os null: standard
	 * error. */
	static void setupTelemetry(bool use_OTEL, std::ostream *os);
	static void shutdownTelemetry();
	/* Selects which lines are logged. flags: CUOBJ_LOG_PATH_... bits, default CUOBJ_LOG_PATH_ERROR; ops:
	 * the operations about which CUOBJ_LOG_PATH_DEBUG logs lines, CUOBJ_LOG_OP_... bits. */
	static void setTelemFlags(unsigned flags);
	static void setTelemFlags(unsigned flags, unsigned ops);
};

#endif
