/* SPDX-License-Identifier: Apache-2.0 */
/* The published specification of cuObjServer, said by the compiler: every signature, field and number of it. */
#include "cuobjserver.h"

#include <type_traits>

#define same(a, b) static_assert(std::is_same<a, b>::value, #a)
#define has(type, member) static_assert(sizeof(static_cast<type>(member)) > 0, #member)

/* 1.3 */
static_assert(CU_OBJ_SUCCESS == 0 && CU_OBJ_FAIL == 1, "1.3.1");
static_assert(CUOBJ_PROTO_RDMA_DC_V1 == 1001 && CUOBJ_PROTO_MAX > 1001, "1.3.2");
static_assert(CUOBJ_GET == 0 && CUOBJ_PUT == 1 && CUOBJ_INVALID == 9999, "1.3.3");
static_assert(CHANNEL_ID_FREE == 0 && CHANNEL_ID_ALLOCATED == 1 && CHANNEL_ID_IN_USE == 2 &&
		      INVALID_CHANNEL_ID == UINT16_MAX,
	      "1.3.4");
static_assert(CUOBJ_DELAY_NONE == 0 && CUOBJ_DELAY_BATCH == 1 && CUOBJ_DELAY_ENTRY == 2 &&
		      CUOBJ_DELAY_ADAPTIVE == 3 && CUOBJ_DELAY_INVALID == 4,
	      "1.3.5");
same(cuObjChannelIdState_t, enum cuObjChannelIdState_enum);
same(cuObjDelayMode_t, enum cuObjDelayMode);

/* 1.4 */
static_assert(std::is_constructible<RDMAConnection, const char *, unsigned short>::value, "1.4.2");
static_assert(!std::is_copy_constructible<RDMAConnection>::value &&
		      !std::is_copy_assignable<RDMAConnection>::value &&
		      !std::is_move_constructible<RDMAConnection>::value &&
		      !std::is_move_assignable<RDMAConnection>::value,
	      "1.4.2");
static_assert(!std::has_virtual_destructor<RDMAConnection>::value, "1.4.1");
same(decltype(RDMAConnection::params), cuObjRDMATunable);
same(decltype(&RDMAConnection::startRDMASession), int (RDMAConnection::*)());
same(decltype(&RDMAConnection::initRDMAConfigParams), void (RDMAConnection::*)(cuObjRDMATunable));
same(decltype(&RDMAConnection::closeRDMASession), void (RDMAConnection::*)());
same(decltype(&RDMAConnection::handleDisconnectEvent), void (RDMAConnection::*)(struct rdma_cm_id *));
same(decltype(&RDMAConnection::getChannelIP), char *(RDMAConnection::*)(struct rdma_cm_id *));
same(decltype(&RDMAConnection::getChannelPort), int (RDMAConnection::*)(struct rdma_cm_id *));
same(decltype(&RDMAConnection::getConfigTunableParam),
     void (RDMAConnection::*)(struct cuObjRDMATunableParam *));

/* 1.5.1 to 1.5.3 */
static_assert(std::is_base_of<RDMAConnection, cuObjServer>::value, "1.5.1");
static_assert(std::is_constructible<cuObjServer, const char *, unsigned short, unsigned>::value, "1.5.2.1");
static_assert(
	std::is_constructible<cuObjServer, const char *, unsigned short, unsigned, cuObjRDMATunable>::value,
	"1.5.2.2");
static_assert(std::is_default_constructible<cuObjServer>::value, "1.5.2.3");
same(decltype(&cuObjServer::allocHostBuffer), void *(cuObjServer::*)(size_t));
typedef struct rdma_buffer *buffer;
typedef buffer (cuObjServer::*registers)(void *, size_t);
typedef buffer (cuObjServer::*registers_list)(std::vector<cuObjScatterGatherEntry_t>);
has(registers, &cuObjServer::registerBuffer);
has(registers_list, &cuObjServer::registerBuffer);
same(decltype(&cuObjServer::getRDMABufferFromSgList),
     buffer (cuObjServer::*)(buffer, std::vector<cuObjScatterGatherEntryWithOffset_t>));
same(decltype(&cuObjServer::putRDMABufferFromSgList), void (cuObjServer::*)(buffer));
same(decltype(&cuObjServer::deRegisterBuffer), void (cuObjServer::*)(buffer));

/* 1.5.4 to 1.5.8: what comes behind the token has defaults, with and without a delay. */
typedef ssize_t (cuObjServer::*moves)(const std::string &, buffer, uint64_t, size_t, const std::string &,
				      uint16_t, uint64_t, ibv_wc_status *, void *);
typedef ssize_t (cuObjServer::*moves_delayed)(const std::string &, buffer, uint64_t, size_t,
					      const std::string &, uint32_t, uint16_t, uint64_t,
					      ibv_wc_status *, void *);
has(moves, &cuObjServer::handleGetObject);
has(moves, &cuObjServer::handlePutObject);
has(moves_delayed, &cuObjServer::handleGetObject);
has(moves_delayed, &cuObjServer::handlePutObject);
static const std::string text;
static const uint16_t channel = 0;
static const uint32_t delay = 0;
same(decltype(std::declval<cuObjServer>().handleGetObject(text, nullptr, 0, 0, text, channel)), ssize_t);
same(decltype(std::declval<cuObjServer>().handlePutObject(text, nullptr, 0, 0, text, delay)), ssize_t);
same(decltype(&cuObjServer::poll), int (cuObjServer::*)(cuObjAsyncEvent_t *, int, uint16_t));
same(decltype(std::declval<cuObjServer>().poll(nullptr, 0)), int);
same(decltype(&cuObjServer::isConnected), bool (cuObjServer::*)());
same(decltype(&cuObjServer::allocateChannelId), uint16_t (cuObjServer::*)());
same(decltype(&cuObjServer::freeChannelId), void (cuObjServer::*)(uint16_t));
same(decltype(&cuObjServer::setupTelemetry), void (*)(bool, std::ostream *));
same(decltype(&cuObjServer::shutdownTelemetry), void (*)());
typedef void (*sets_flags)(unsigned);
typedef void (*sets_flags_and_ops)(unsigned, unsigned);
has(sets_flags, &cuObjServer::setTelemFlags);
has(sets_flags_and_ops, &cuObjServer::setTelemFlags);
static_assert(CUOBJ_LOG_PATH_INFO == 1 && CUOBJ_LOG_PATH_DEBUG == 2 && CUOBJ_LOG_PATH_ERROR == 4, "1.5.8.3");

/* 1.6 */
same(cuObjScatterGatherEntry_t, struct cuObjScatterGatherEntry);
same(decltype(cuObjScatterGatherEntry_t::addr), void *);
same(decltype(cuObjScatterGatherEntry_t::size), size_t);
same(cuObjScatterGatherEntryWithOffset_t, struct cuObjScatterGatherEntryWithOffset);
same(decltype(cuObjScatterGatherEntryWithOffset_t::offset), loff_t);
same(decltype(cuObjScatterGatherEntryWithOffset_t::size), size_t);
same(cuObjAsyncEvent_t, struct cuObjAsyncEvent_s);
same(decltype(cuObjAsyncEvent_t::async_handle), void *);
same(decltype(cuObjAsyncEvent_t::status), ssize_t);

#define field(type, name) same(decltype(cuObjRDMATunableParam::name), type)
field(int, num_dcis);
field(unsigned, cq_depth);
field(unsigned long, dc_key);
field(int, ibv_poll_max_comp_event);
field(int, service_level);
field(uint8_t, timeout);
field(unsigned, hop_limit);
field(int, pkey_index);
field(int, max_wr);
field(int, max_sge);
field(uint32_t, delay_interval);
field(cuObjDelayMode_t, delay_mode);
field(bool, qp_reset_on_failure);
field(uint8_t, retry_cnt);
field(unsigned, traffic_class);
field(int, max_rd_atomic);

/* 1.6.5: a setter and a getter for each; what was set is what is got, one by one, beside the defaults. */
static bool
is_kept()
{
	cuObjRDMATunable t;
	bool is = t.getNumDcis() == 128 && t.getCqDepth() == 640 && t.getDcKey() == 0xffeeddcc &&
		  t.getServiceLevel() == 0 && t.getTimeout() == 16 && t.getHopLimit() == 64 &&
		  t.getPkeyIndex() == 0 && t.getIbvPollMaxCompEv() == 16 && t.getMaxWr() == 128 &&
		  t.getMaxSge() == 10 && t.getDelayInterval() == 5000 &&
		  t.getDelayMode() == CUOBJ_DELAY_BATCH && t.getQPResetOnFailure() &&
		  t.getRetryCount() == 7 && t.getTrafficClass() == 96 && t.getMaxRdAtomic() == 0;

	t.setNumDcis(1);
	t.setCqDepth(2);
	t.setDcKey(3);
	t.setIbvPollMaxCompEv(4);
	t.setServiceLevel(5);
	t.setTimeout(6);
	t.setHopLimit(7);
	t.setPkeyIndex(8);
	t.setMaxWr(9);
	t.setMaxSge(10);
	t.setDelayInterval(11);
	t.setDelayMode(CUOBJ_DELAY_ENTRY);
	t.setQPResetOnFailure(false);
	t.setRetryCount(1);
	t.setTrafficClass(13);
	t.setMaxRdAtomic(14);

	RDMAConnection c("127.0.0.1", 18515);
	cuObjRDMATunableParam p;

	c.initRDMAConfigParams(t);
	c.getConfigTunableParam(&p);
	return is && p.num_dcis == t.getNumDcis() && p.num_dcis == 1 && p.cq_depth == t.getCqDepth() &&
	       p.cq_depth == 2 && p.dc_key == t.getDcKey() && p.dc_key == 3 &&
	       p.ibv_poll_max_comp_event == t.getIbvPollMaxCompEv() && p.ibv_poll_max_comp_event == 4 &&
	       p.service_level == t.getServiceLevel() && p.service_level == 5 &&
	       p.timeout == t.getTimeout() && p.timeout == 6 && p.hop_limit == t.getHopLimit() &&
	       p.hop_limit == 7 && p.pkey_index == t.getPkeyIndex() && p.pkey_index == 8 &&
	       p.max_wr == t.getMaxWr() && p.max_wr == 9 && p.max_sge == t.getMaxSge() && p.max_sge == 10 &&
	       p.delay_interval == t.getDelayInterval() && p.delay_interval == 11 &&
	       p.delay_mode == t.getDelayMode() && p.delay_mode == CUOBJ_DELAY_ENTRY &&
	       p.qp_reset_on_failure == t.getQPResetOnFailure() && !p.qp_reset_on_failure &&
	       p.retry_cnt == t.getRetryCount() && p.retry_cnt == 1 &&
	       p.traffic_class == t.getTrafficClass() && p.traffic_class == 13 &&
	       p.max_rd_atomic == t.getMaxRdAtomic() && p.max_rd_atomic == 14;
}

int
main()
{
	return is_kept() ? 0 : 1;
}
