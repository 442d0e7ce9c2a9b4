/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts/proxy_environment.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/parse.h"

#define SEPARATORS ", \t"
/* Size of the longest address with a prefix length. A longer entry of no_proxy is a name. */
#define NETWORK_MAX (INET6_ADDRSTRLEN + sizeof("/128"))

struct number {
	uint8_t bytes[sizeof(struct in6_addr)];
	unsigned bits; /* 0 = not an address */
};

static struct number number_of(const char *text)
{
	struct number n = { .bits = 0 };

	if (inet_pton(AF_INET, text, n.bytes) == 1)
		n.bits = 32;
	else if (inet_pton(AF_INET6, text, n.bytes) == 1)
		n.bits = 128;
	return n;
}

static bool is_in_network(const struct number *host, const char *entry, size_t len)
{
	char text[NETWORK_MAX], *slash;
	struct number network;
	unsigned bits, whole, rest;
	uint64_t given;

	if (len >= sizeof(text))
		return false;
	memcpy(text, entry, len);
	text[len] = '\0';
	slash = strchr(text, '/');
	if (slash)
		*slash = '\0';
	network = number_of(text);
	if (network.bits != host->bits)
		return false;
	bits = network.bits;
	if (slash) {
		if (cw_parse_u64(slash + 1, 0, network.bits, &given) < 0)
			return false;
		bits = (unsigned)given;
	}
	whole = bits / 8;
	rest = bits % 8;
	return memcmp(network.bytes, host->bytes, whole) == 0 &&
	       (!rest || (network.bytes[whole] ^ host->bytes[whole]) >> (8 - rest) == 0);
}

/* True if the host is the domain `entry`, or a name inside this domain. */
static bool is_in_domain(const char *host, size_t host_len, const char *entry, size_t len)
{
	if (len && entry[len - 1] == '.')
		len--;
	if (len && *entry == '.') {
		entry++;
		len--;
	}
	if (!len || len > host_len || strncasecmp(host + host_len - len, entry, len) != 0)
		return false;
	return len == host_len || host[host_len - len - 1] == '.';
}

bool cw_proxy_is_bypassed(const char *no_proxy, const char *host)
{
	struct number number = number_of(host);
	size_t host_len = strlen(host), len;

	if (!strcmp(no_proxy, "*"))
		return true;
	if (host_len && host[host_len - 1] == '.')
		host_len--;
	for (const char *p = no_proxy; *(p += strspn(p, SEPARATORS)); p += len) {
		len = strcspn(p, SEPARATORS);
		if (number.bits ? is_in_network(&number, p, len)
				: is_in_domain(host, host_len, p, len))
			return true;
	}
	return false;
}

/* Returns the value of the variable; NULL = unset or empty. curl treats both alike. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *first_of(const char *name, const char *other)
{
	const char *value = variable(name);

	return value ? value : variable(other);
}

const char *cw_proxy_for(const char *scheme, const char *host)
{
	const char *none = first_of("no_proxy", "NO_PROXY"), *proxy;

	if (none && cw_proxy_is_bypassed(none, host))
		return "";
	proxy = strcmp(scheme, "https") == 0 ? first_of("https_proxy", "HTTPS_PROXY")
					     : variable("http_proxy");
	if (!proxy)
		proxy = first_of("all_proxy", "ALL_PROXY");
	return proxy ? proxy : "";
}
