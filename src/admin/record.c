/* SPDX-License-Identifier: Apache-2.0 */
/* Control calls as events of audit/: who called what with which arguments, and how it ended. */
#include "admin/admin_int.h"

#include "audit/audit.h"
#include "base/address.h"
#include "base/escape.h"

#include <string.h>
#include <sys/socket.h>

void
record_peer(struct MHD_Connection *conn, char out[RECORD_PEER_BYTES])
{
	const struct sockaddr *sa =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
	int fd = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	struct ucred who;
	socklen_t len = sizeof who;
	char address[ADDRESS_TEXT_BYTES];

	if (sa->sa_family != AF_UNIX)
		snprintf(out, RECORD_PEER_BYTES, "%s", address_text(sa, address));
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0)
		snprintf(out, RECORD_PEER_BYTES, "unix uid=%u pid=%d", who.uid, who.pid);
	else
		snprintf(out, RECORD_PEER_BYTES, "unix");
}

static void
write_args(const struct admin_args *args, FILE *out)
{
	putc('{', out);
	for (int i = 0; i < args->nr; i++) {
		fputs(i ? "," : "", out);
		json_string(out, args->arg[i].name);
		putc(':', out);
		json_string(out, args->arg[i].value);
	}
	putc('}', out);
}

void
record_call(const struct call *c, int status)
{
	struct audit_event e = { .kind = status == 401 ? AUDIT_REFUSAL : AUDIT_CHANGE,
				 .op = "Control",
				 .subject = c->ctl->path,
				 .has_status = true,
				 .status = status,
				 .peer = c->peer };
	char args[ADMIN_ARGS_MAX * 300 * ESCAPE_JSON_MAX / 2];
	FILE *f;

	if (c->ctl->is_quiet || !audit_wants(e.kind))
		return;
	f = c->args.nr ? fmemopen(args, sizeof args, "w") : NULL;
	if (f) {
		write_args(&c->args, f);
		if (fclose(f) == 0 && memchr(args, 0, sizeof args))
			e.args = args;
	}
	audit_put(&e);
}
