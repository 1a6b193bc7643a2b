/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, ports and address blocks as text.  Pure (no resolver); the loader calls it. */
#include "conf/conf_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const uint8_t mapped_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static void
map_v4(const struct in_addr *v4, struct in6_addr *ret_addr)
{
	memcpy(ret_addr->s6_addr, mapped_prefix, 12);
	memcpy(ret_addr->s6_addr + 12, v4, 4);
}

/* Clears the bits after the prefix.  Tells whether any was set. */
static bool
clear_host_bits(struct conf_net *net)
{
	bool was_set = false;

	for (int i = 0; i < 16; i++) {
		int bits = net->prefix - i * 8;
		uint8_t kept = bits <= 0 ? 0 : bits < 8 ? (uint8_t)(0xff00 >> bits) : 0xff;

		was_set |= (net->addr.s6_addr[i] & ~kept) != 0;
		net->addr.s6_addr[i] &= kept;
	}
	return was_set;
}

int
conf_net_parse(const char *text, struct conf_net *ret_net)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	struct conf_net net;
	struct in_addr v4;
	uint64_t prefix, base;
	bool has_rest;

	if (len >= sizeof host)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = 0;
	if (inet_pton(AF_INET, host, &v4) == 1) {
		map_v4(&v4, &net.addr);
		base = 96;
	} else if (inet_pton(AF_INET6, host, &net.addr) == 1) {
		base = 0;
	} else {
		return -EINVAL;
	}
	prefix = 128 - base;
	if (slash && (u64_parse(slash + 1, &prefix) < 0 || prefix > 128 - base))
		return -EINVAL;
	net.prefix = (uint8_t)(base + prefix);
	has_rest = clear_host_bits(&net);
	*ret_net = net;
	return has_rest ? -ERANGE : 0;
}

const char *
conf_net_refusal(const char *text, char out[CONF_NET_REFUSAL_MAX])
{
	struct conf_net net;
	char block[INET6_ADDRSTRLEN + 4];

	if (conf_net_parse(text, &net) != -ERANGE) {
		snprintf(out, CONF_NET_REFUSAL_MAX,
			 "expected an address or a block (10.0.0.5, 10.0.0.0/8, fd00::/8)");
		return out;
	}
	conf_net_format(&net, block, sizeof block);
	snprintf(out, CONF_NET_REFUSAL_MAX,
		 "the address has bits set after the block's length: write %s, or the address alone", block);
	return out;
}

void
conf_net_format(const struct conf_net *net, char *out, size_t cap)
{
	char host[INET6_ADDRSTRLEN];
	bool v4 = net->prefix >= 96 && memcmp(net->addr.s6_addr, mapped_prefix, 12) == 0;

	if (v4)
		inet_ntop(AF_INET, net->addr.s6_addr + 12, host, sizeof host);
	else
		inet_ntop(AF_INET6, &net->addr, host, sizeof host);
	snprintf(out, cap, "%s/%d", host, v4 ? net->prefix - 96 : net->prefix);
}

/* Every address: one IPv6 socket takes IPv4 as well, where the kernel has IPv6 at all. */
static bool
have_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno != EAFNOSUPPORT;
	close(fd);
	return true;
}

static int
host_parse(const char *host, uint16_t port, struct sockaddr_storage *sa, socklen_t *len)
{
	struct sockaddr_in *in = (struct sockaddr_in *)sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

	memset(sa, 0, sizeof *sa);
	if (strcmp(host, "localhost") == 0)
		host = "127.0.0.1";
	else if (strcmp(host, "*") == 0)
		host = have_ipv6() ? "::" : "0.0.0.0";
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		*len = sizeof *in;
		return 0;
	}
	if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		*len = sizeof *in6;
		return 0;
	}
	return -EINVAL;
}

int
conf_addr_parse(const char *text, struct sockaddr_storage *ret_sa, socklen_t *ret_len)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN];
	struct sockaddr_storage sa;
	socklen_t sa_len;
	size_t len;
	uint64_t port;

	if (!colon || strlen(colon + 1) > 5 || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    u64_parse(colon + 1, &port) < 0 || port > 65535)
		return -EINVAL;
	len = (size_t)(colon - text);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
		if (!memchr(text, ':', len))
			return -EINVAL;
	}
	if (len == 0 || len >= sizeof host)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = 0;
	if (host_parse(host, (uint16_t)port, &sa, &sa_len) < 0)
		return -EINVAL;
	*ret_sa = sa;
	*ret_len = sa_len;
	return 0;
}

/* ---- names in Host ---- */

bool
conf_is_loopback(const struct sockaddr_storage *sa)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

	if (sa->ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	if (sa->ss_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127);
}

/* Nothing, or a colon and digits. */
static bool
is_port(const char *text, size_t len)
{
	if (len == 0)
		return true;
	if (text[0] != ':')
		return false;
	for (size_t i = 1; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
	}
	return true;
}

static bool
is_address(int family, const char *text, size_t len)
{
	char host[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (len >= sizeof host || memchr(text, 0, len))
		return false;
	memcpy(host, text, len);
	host[len] = 0;
	return inet_pton(family, host, &a) == 1;
}

/* The domain itself, or a name in it. */
static bool
is_in_domain(const char *name, size_t len, const char *domain)
{
	size_t n = strlen(domain);

	if (len < n || strncasecmp(name + len - n, domain, n) != 0)
		return false;
	return len == n || (len > n + 1 && name[len - n - 1] == '.');
}

bool
conf_host_is_ours(const struct conf_s3 *s3, const char *host, size_t len)
{
	const char *end = len && host[0] == '[' ? memchr(host, ']', len) : memchr(host, ':', len);
	size_t n = end ? (size_t)(end - host) : len;

	if (len && host[0] == '[')
		return end && is_port(end + 1, len - n - 1) && is_address(AF_INET6, host + 1, n - 1);
	if (!is_port(host + n, len - n))
		return false;
	if ((n == 9 && strncasecmp(host, "localhost", n) == 0) || is_address(AF_INET, host, n))
		return true;
	for (int i = 0; s3 && i < s3->domain_nr; i++) {
		if (is_in_domain(host, n, s3->domains[i]))
			return true;
	}
	return false;
}
