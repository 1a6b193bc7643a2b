/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's interface of cuObject, on libgantry-server: a program that has its own control plane moves bytes between its
 * memory and the window that a client's token names.  gantry-cuobject(7) says what differs from NVIDIA's library.
 *
 * Registrations, views and channels may be made and given back by any thread at any time; a channel is one thread's at a
 * time, and a second one that uses it meanwhile gets -EIO.  No exception leaves the library.
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

/* The library's data about registered memory, or a view of it. */
struct rdma_buffer;

typedef enum cuObjChannelIdState_enum {
	CHANNEL_ID_FREE = 0,
	CHANNEL_ID_ALLOCATED = 1,
	CHANNEL_ID_IN_USE = 2,
	INVALID_CHANNEL_ID = UINT16_MAX, /* what allocateChannelId() returns when there is none */
} cuObjChannelIdState_t;

/* How a synchronous call looks for its end. */
typedef enum cuObjDelayMode {
	CUOBJ_DELAY_NONE = 0,     /* without pause */
	CUOBJ_DELAY_BATCH = 1,    /* pauses when it found nothing */
	CUOBJ_DELAY_ENTRY = 2,    /* pauses once for each completion */
	CUOBJ_DELAY_ADAPTIVE = 3, /* sleeps when nothing comes for a while */
	CUOBJ_DELAY_INVALID = 4,
} cuObjDelayMode_t;

typedef struct cuObjScatterGatherEntry {
	void *addr;
	size_t size;
} cuObjScatterGatherEntry_t;

/* A part of a registered buffer. */
typedef struct cuObjScatterGatherEntryWithOffset {
	loff_t offset;
	size_t size;
} cuObjScatterGatherEntryWithOffset_t;

typedef struct cuObjAsyncEvent_s {
	void *async_handle;
	ssize_t status; /* enum ibv_wc_status */
} cuObjAsyncEvent_t;

struct cuObjRDMATunableParam {
	int num_dcis;                /* channels */
	unsigned cq_depth;           /* work requests of a channel on the wire */
	unsigned long dc_key;        /* the clients' must be the same */
	int ibv_poll_max_comp_event; /* not used */
	int service_level;
	uint8_t timeout; /* 4.096 us * 2^timeout are one try */
	unsigned hop_limit;
	int pkey_index;
	int max_wr;              /* not used */
	int max_sge;             /* pieces of one operation */
	uint32_t delay_interval; /* ns */
	cuObjDelayMode_t delay_mode;
	bool qp_reset_on_failure; /* else a channel whose operation failed is of no use any more */
	uint8_t retry_cnt;        /* 0 to 7 */
	unsigned traffic_class;   /* below 256; else it is logged, and the default counts */
	int max_rd_atomic;        /* 0: automatic */
};

/* Is filled with the defaults. */
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

/* The session below a server; programs make a cuObjServer. */
class RDMAConnection
{
      public:
	cuObjRDMATunable params;

	/* Notes the address, an IPv4 or IPv6 one without brackets; 0.0.0.0 and :: are every port of the machine. */
	RDMAConnection(const char *ip, unsigned short port);
	RDMAConnection(const RDMAConnection &) = delete;
	RDMAConnection &operator=(const RDMAConnection &) = delete;
	RDMAConnection(RDMAConnection &&) = delete;
	RDMAConnection &operator=(RDMAConnection &&) = delete;
	~RDMAConnection();

	/* Opens the session with params.  0, also when it is open; -1: the address is none, or none of ours. */
	int startRDMASession();
	void initRDMAConfigParams(cuObjRDMATunable config_params);
	/* Gives back channels and registrations; what the program still holds of them is dead, and may be given back. */
	void closeRDMASession();
	/* Does nothing: there are no connections. */
	void handleDisconnectEvent(struct rdma_cm_id *id);
	/* Returns the text of an id's source address, which the thread's next call overwrites; null: the server's. */
	char *getChannelIP(struct rdma_cm_id *id);
	/* Returns an id's source port; null: the server's. */
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
	/* Starts the session; isConnected() says whether that went. */
	cuObjServer(const char *ip, unsigned short port, unsigned proto);
	cuObjServer(const char *ip, unsigned short port, unsigned proto, cuObjRDMATunable params);
	/* Has no address, and so never a session. */
	cuObjServer() = default;
	~cuObjServer();

	/* Allocates whole pages, to be freed by free(); null: size is 0, or there is no memory. */
	void *allocHostBuffer(size_t size);
	/* Register memory; null: it cannot be, and telemetry says why.  At most 10 entries. */
	struct rdma_buffer *registerBuffer(void *ptr, size_t size);
	struct rdma_buffer *registerBuffer(std::vector<cuObjScatterGatherEntry_t> sglist);
	/* Makes a view of parts of a buffer of one entry, which stays registered meanwhile; null: a part is not in it. */
	struct rdma_buffer *getRDMABufferFromSgList(struct rdma_buffer *rdma_buffer,
						    std::vector<cuObjScatterGatherEntryWithOffset_t> sglist);
	void putRDMABufferFromSgList(struct rdma_buffer *rdma_buffer);
	/* Takes a registration back.  Null is fine. */
	void deRegisterBuffer(struct rdma_buffer *rdma_buff);

	/*
	 * Move size bytes, at most 1 GiB, between the client's memory at remote_buf_start, which lies in the window of
	 * the token rdma_descr, and the buffer from local_offset on (0 for a buffer of several entries): to the client
	 * for its GET, from it for its PUT.  The channel was allocated.  Without async_handle the bytes that moved; with
	 * it 0, and poll() says what became of it; or -ENODEV, -EIO, -ENOMEM, -EAFNOSUPPORT.  *status is written only
	 * when a completion came.  poll_delay: ns instead of params' interval.
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
	 * Takes operations with a handle that are over, at most 16.  Their number; -EIO: one of them failed, and the
	 * entries that were filled are those whose async_handle is not null (the others are as they were); -ENODEV;
	 * -EINVAL: events is null, max_events below 0, or the channel is not allocated.
	 */
	int poll(cuObjAsyncEvent_t *events, int max_events, uint16_t channel = 0);

	/* Is the session open, and a port of it up? */
	bool isConnected();

	/* Allocates a channel, the lowest that is free; INVALID_CHANNEL_ID: there is none. */
	uint16_t allocateChannelId();
	/* Frees a channel, by any thread. A pointer that is not a channel is ignored. */
	void freeChannelId(uint16_t channel_id);

	/* Has lines written to a stream, until shutdownTelemetry() has returned; without one, to standard error. */
	static void setupTelemetry(bool use_OTEL, std::ostream *os);
	static void shutdownTelemetry();
	/* CUOBJ_LOG_PATH_...: which lines; CUOBJ_LOG_PATH_ERROR where nobody says.  Of CUOBJ_LOG_OP_...: which operations. */
	static void setTelemFlags(unsigned flags);
	static void setTelemFlags(unsigned flags, unsigned ops);
};

#endif
