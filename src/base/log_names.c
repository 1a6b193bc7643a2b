/* SPDX-License-Identifier: Apache-2.0 */
/* The log's names: modules, and classes of events with their MESSAGE_IDs.  systemd/gantry.catalog and
 * docs/events.md are checked against this table (scripts/check-events). */
#include "base/log.h"

const char *const log_module_name[LOG_MODULES_NR] = {
	"gantryd", "access", "admin", "auth", "chan", "core", "http", "rdma", "req", "store", "trace", "xfer",
};

/* clang-format off */
const struct log_event_desc log_events[LOG_EV_NR] = {
	[LOG_EV_NONE] = { "", "", "" },
	[LOG_EV_READY] = { "ready", "ba574e79f370464fbc4c154ec1ef581e", "Gantry serves requests" },
	[LOG_EV_STOPPED] = { "stopped", "5d5a2786b49e7bb4db5277e440ccde47", "Gantry has stopped in good order" },
	[LOG_EV_DRAIN] = { "drain", "00566b154e718f30a7f56be60b9d3c92", "Gantry begins or ends draining" },
	[LOG_EV_RELOADED] = { "reloaded", "6fa1032562536b26ce1f4d6cc8f89384", "A new configuration is in use" },
	[LOG_EV_RELOAD_FAILED] = { "reload_failed", "eca85f925b4d687c59922e407a20bc10",
		"The new configuration cannot be used; nothing was changed" },
	[LOG_EV_RESTART_NEEDED] = { "restart_needed", "2a638cc0b0305bc9be89f6823fd1e62d",
		"A changed key takes effect only with a restart" },
	[LOG_EV_START_FAILED] = { "start_failed", "dfa03550b42dc1281f0b48b596e16988", "Gantry cannot start" },
	[LOG_EV_DISK_FAILED] = { "disk_failed", "c2d5b872cf6bc37a184cef71833437b8",
		"A disk failed and is read-only until a restart" },
	[LOG_EV_DAMAGED] = { "damaged", "a2d2c7b58d274f8ca4bc097041ffd88a",
		"The scrub found an object whose bytes are not those that were written, or cannot be read" },
	[LOG_EV_SCRUB] = { "scrub", "6155b92c8d2b4c6fbe545b01c58afd79", "A walk that reads every object ended" },
	[LOG_EV_RAIL_DOWN] = { "rail_down", "763d7c72db94a5b51e80ec5d880de7d4", "An RDMA rail cannot be used" },
	[LOG_EV_RAIL_UP] = { "rail_up", "b2d6c6c7d9f4e344e33dca3f78a8f236", "An RDMA rail can be used again" },
	[LOG_EV_REOPENED] = { "device_reopened", "e630d655f22a410ead69bc1b1c6c6644",
		"An RDMA device whose context had died was re-opened" },
	[LOG_EV_CORE_STUCK] = { "core_stuck", "e87fcc33b990f61bbc574346047564f5", "A core's loop does not turn" },
	[LOG_EV_CERTIFICATE] = { "certificate", "f61f6fe57a7e3320f2aad78ac01f3fe9",
		"A certificate has expired, soon will, or cannot be read" },
	[LOG_EV_CONTROL] = { "control", "9078794478a168c54e91fa7dbc3c2af3", "An operator's command was carried out" },
	[LOG_EV_TRACE] = { "trace", "356210f320385c2e63828a52e4db4bdf", "A step of a traced request" },
	[LOG_EV_ACCESS] = { "access", "d63e496e26d1b19fa4e15ae6617cd556", "A request ended" },
};
/* clang-format on */
