/* SPDX-License-Identifier: Apache-2.0 */
#include "common/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/parse.h"

socklen_t cw_sockaddr_len(const struct sockaddr *address)
{
	switch (address->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

bool cw_sockaddr_is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	if (address->sa_family == AF_INET)
		return ntohl(in4->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

bool cw_address_is_loopback(const struct cw_address *address)
{
	return address->len && cw_sockaddr_is_loopback((const struct sockaddr *)&address->numeric);
}

bool cw_address_is_any(const struct cw_address *address)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)&address->numeric;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->numeric;

	if (!address->len)
		return false;
	return address->numeric.ss_family == AF_INET ? in4->sin_addr.s_addr == htonl(INADDR_ANY)
						     : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

static bool has_only(const char *s, size_t len, const char *others)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && (!s[i] || !strchr(others, s[i])))
			return false;
	return len > 0;
}

bool cw_node_name_is_valid(const char *name, size_t len)
{
	return len < CW_NODE_NAME_MAX && has_only(name, len, ".-_");
}

/* A name whose last label is a number is a mistyped address, such as "10.0.0.300". */
static bool is_host_name(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	return has_only(host, strlen(host), ".-_") && isalnum((unsigned char)host[0]) &&
	       strspn(last, "0123456789") != strlen(last);
}

static int parse_host(const char *text, struct cw_address *a, struct cw_err *err)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)&a->numeric;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a->numeric;
	size_t len = strlen(a->host);

	if (a->host[0] == '[' && a->host[len - 1] == ']') {
		memmove(a->host, a->host + 1, len);
		a->host[len - 2] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(a->port);
		if (inet_pton(AF_INET6, a->host, &in6->sin6_addr) != 1)
			return cw_err_set(err, EINVAL, "'%s': not an IPv6 address", text);
		a->len = sizeof(*in6);
		return 0;
	}
	if (inet_pton(AF_INET, a->host, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(a->port);
		a->len = sizeof(*in4);
		return 0;
	}
	if (!is_host_name(a->host))
		return cw_err_set(
			err, EINVAL,
			"'%s': neither an address (IPv6 goes in brackets) nor a host name", text);
	return 0;
}

int cw_address_parse(const char *text, struct cw_address *ret, struct cw_err *err)
{
	struct cw_address a = { .len = 0 };
	const char *colon = strrchr(text, ':');
	uint64_t port;
	int r;

	if (!colon || colon == text)
		return cw_err_set(err, EINVAL, "'%s' is not of the form address:port", text);
	if ((size_t)(colon - text) >= sizeof(a.host))
		return cw_err_set(err, EINVAL, "'%.40s…': the host name is too long", text);
	memcpy(a.host, text, (size_t)(colon - text));
	if (cw_parse_u64(colon + 1, 1, 65535, &port) < 0)
		return cw_err_set(err, EINVAL, "'%s': the port must be 1 to 65535", text);
	a.port = (uint16_t)port;
	r = parse_host(text, &a, err);
	if (r < 0)
		return r;
	*ret = a;
	return 0;
}
