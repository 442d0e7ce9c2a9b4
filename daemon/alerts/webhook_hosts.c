/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CURLOPT_RESOLVE puts our addresses into libcurl's cache, where libcurl finds them. Each transfer
 * replaces the entries of an earlier one. If this file and libcurl disagree about the hosts of a
 * URL, the cache lacks a name. on_own_lookup() then fails the transfer, because a look-up by
 * libcurl would block.
 */
#include "daemon/alerts/webhook_hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/address.h"
#include "common/cleanup.h"
#include "common/parse.h"
#include "daemon/alerts/proxy_environment.h"
#include "transport/resolve.h"
#include "transport/secret.h"

/*
 * The hosts are the server and its proxy. Some proxies need the server's address, so we may have to
 * resolve both.
 */
#define MAX_HOSTS 2u
/*
 * libcurl tries the addresses one after the other within the time of one attempt. It would not get
 * to more.
 */
#define MAX_ADDRESSES 16u
/* Ports of a proxy whose URL has none, as curl uses them. */
#define PROXY_PORT 1080u
#define PROXY_PORT_TLS 443u

struct host {
	char name[CW_ADDRESS_MAX_HOST]; /* as in the URL, without brackets */
	uint16_t port;
	/* Address family if name is a numeric address; 0 = name is a host name. */
	int family;
	/* Addresses for libcurl, such as "10.0.0.1,[fd00::1]". */
	char found[MAX_ADDRESSES * (INET6_ADDRSTRLEN + 3)];
};

struct cw_webhook_hosts {
	struct event_base *base;
	char *url, *proxy; /* in secret memory; proxy: from the environment, "" = none */
	char *server;
	struct host hosts[MAX_HOSTS];
	unsigned n;
	struct cw_resolve *resolve;
	char error[CW_ADDRESS_MAX_HOST + 96];
	cw_webhook_hosts_fn fn;
	void *user;
};

/* ---- finding the hosts ---- */

static int set_host(struct host *host, const char *name, const char *port, uint16_t port_default)
{
	struct in6_addr any;
	uint64_t number = port_default;
	size_t len = strlen(name);

	if (*name == '[' && len > 2) {
		name++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(host->name))
		return -EINVAL;
	if (port && cw_parse_u64(port, 1, UINT16_MAX, &number) < 0)
		return -EINVAL;
	memcpy(host->name, name, len);
	host->name[len] = '\0';
	host->port = (uint16_t)number;
	if (inet_pton(AF_INET, host->name, &any) == 1)
		host->family = AF_INET;
	else if (inet_pton(AF_INET6, host->name, &any) == 1)
		host->family = AF_INET6;
	return 0;
}

struct url_parts {
	char *scheme, *host, *port;
};

static void url_parts_fini(struct url_parts *parts)
{
	curl_free(parts->scheme);
	curl_free(parts->host);
	curl_free(parts->port);
}

/* Splits the URL into its parts. ret->port stays NULL if the URL has no port. */
static int take_apart(const char *url, unsigned flags, struct url_parts *ret)
{
	CURLU *u = curl_url();
	bool ok;

	if (!u)
		return -ENOMEM;
	ok = curl_url_set(u, CURLUPART_URL, url, flags) == CURLUE_OK &&
	     curl_url_get(u, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
	     curl_url_get(u, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK;
	if (ok)
		(void)curl_url_get(u, CURLUPART_PORT, &ret->port, 0);
	curl_url_cleanup(u);
	return ok ? 0 : -EINVAL;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* True if this kind of proxy needs the address of the server, because it resolves no names. */
static bool wants_address(const char *scheme)
{
	return strcasecmp(scheme, "socks4") == 0 || strcasecmp(scheme, "socks5") == 0;
}

static int add_proxy(struct cw_webhook_hosts *h, struct cw_err *err)
{
	struct url_parts p = { NULL, NULL, NULL };
	bool needs_server;
	int r = take_apart(h->proxy, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME, &p);

	needs_server = r == 0 && wants_address(p.scheme);
	/*
	 * Put the proxy first and the server second. If the proxy does not need the server's
	 * address, n excludes the server.
	 */
	h->hosts[1] = h->hosts[0];
	memset(&h->hosts[0], 0, sizeof(h->hosts[0]));
	if (r == 0)
		r = set_host(&h->hosts[0], p.host, p.port,
			     strcasecmp(p.scheme, "https") == 0 ? PROXY_PORT_TLS : PROXY_PORT);
	url_parts_fini(&p);
	h->n = needs_server ? 2 : 1;
	/* Do not quote the proxy's URL, because it may hold a password. */
	return r < 0 ? cw_err_set(err, -r, "the proxy in the environment is malformed") : 0;
}

static int add_server(struct cw_webhook_hosts *h, struct cw_err *err)
{
	struct url_parts u = { NULL, NULL, NULL };
	int r = take_apart(h->url, 0, &u);

	if (r < 0) {
		r = cw_err_set(err, -r, "webhook URL is malformed");
	} else if (strcmp(u.scheme, "http") != 0 && strcmp(u.scheme, "https") != 0) {
		r = cw_err_set(err, EINVAL, "webhook URL must be http or https, not %s", u.scheme);
	} else if (!is_ascii(u.host)) {
		/*
		 * Refuse it: libcurl would convert the name by the locale, and a daemon has no
		 * locale.
		 */
		r = cw_err_set(err, EINVAL,
			       "webhook URL: write the host name in its ASCII form (xn--…)");
	} else if (set_host(&h->hosts[0], u.host, u.port,
			    strcmp(u.scheme, "https") == 0 ? 443 : 80) < 0) {
		r = cw_err_set(err, EINVAL, "webhook URL is malformed");
	} else {
		h->n = 1;
		h->server = strdup(u.host);
		h->proxy = cw_secret_strdup(cw_proxy_for(u.scheme, h->hosts[0].name));
		if (!h->server || !h->proxy)
			r = cw_err_set(err, ENOMEM, "out of memory");
	}
	url_parts_fini(&u);
	return r;
}

int cw_webhook_hosts_new(struct event_base *base, const char *url, struct cw_webhook_hosts **ret,
			 struct cw_err *err)
{
	struct cw_webhook_hosts *h = calloc(1, sizeof(*h));
	int r;

	if (!h || !(h->url = cw_secret_strdup(url))) {
		free(h);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	h->base = base;
	r = add_server(h, err);
	if (r == 0 && *h->proxy)
		r = add_proxy(h, err);
	if (r < 0) {
		cw_webhook_hosts_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

struct cw_webhook_hosts *cw_webhook_hosts_free(struct cw_webhook_hosts *h)
{
	if (!h)
		return NULL;
	cw_resolve_free(h->resolve);
	cw_secret_free(h->url);
	cw_secret_free(h->proxy);
	free(h->server);
	free(h);
	return NULL;
}

const char *cw_webhook_hosts_server(const struct cw_webhook_hosts *h)
{
	return h->server;
}

/* ---- addresses ---- */

static void on_address(uint32_t tag, const struct sockaddr *address, const char *error, void *user)
{
	struct cw_webhook_hosts *h = user;
	struct host *host = &h->hosts[tag];
	size_t used = strlen(host->found);
	char text[INET6_ADDRSTRLEN];
	bool is_v6;

	if (!address) {
		(void)snprintf(h->error, sizeof(h->error), "%s: %s", host->name, error);
		return;
	}
	is_v6 = address->sa_family == AF_INET6;
	if (!inet_ntop(address->sa_family,
		       is_v6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
			     : (const void *)&((const struct sockaddr_in *)address)->sin_addr,
		       text, sizeof(text)))
		return;
	(void)snprintf(host->found + used, sizeof(host->found) - used, is_v6 ? "%s[%s]" : "%s%s",
		       used ? "," : "", text);
}

static void on_looked_up(void *user)
{
	struct cw_webhook_hosts *h = user;

	h->resolve = cw_resolve_free(h->resolve);
	for (unsigned i = 0; i < h->n && !*h->error; i++)
		if (!h->hosts[i].family && !*h->hosts[i].found)
			(void)snprintf(h->error, sizeof(h->error),
				       "%s: the name server does not answer", h->hosts[i].name);
	h->fn(*h->error ? h->error : NULL, h->user);
}

int cw_webhook_hosts_look_up(struct cw_webhook_hosts *h, int64_t limit_ns, cw_webhook_hosts_fn fn,
			     void *user)
{
	struct cw_resolve_name names[MAX_HOSTS];
	unsigned n = 0;

	for (unsigned i = 0; i < h->n; i++) {
		struct host *host = &h->hosts[i];

		if (host->family)
			continue;
		host->found[0] = '\0';
		names[n++] = (struct cw_resolve_name){
			.host = host->name, .port = host->port, .tag = i, .max = MAX_ADDRESSES
		};
	}
	if (n == 0)
		return 1;
	h->error[0] = '\0';
	h->fn = fn;
	h->user = user;
	return cw_resolve_start_within(h->base, limit_ns, names, n, on_address, on_looked_up, h,
				       &h->resolve);
}

/* ---- a transfer ---- */

static int on_own_lookup(void *state, void *reserved, void *user)
{
	return 1; /* the transfer then fails instead of blocking */
}

static bool append(struct curl_slist **list, const char *name, size_t len, const struct host *host)
{
	char entry[sizeof(host->name) + sizeof(host->found) + 16];
	struct curl_slist *longer;

	(void)snprintf(entry, sizeof(entry), "%.*s:%u:%s", (int)len, name, host->port,
		       host->family ? host->name : host->found);
	longer = curl_slist_append(*list, entry);
	if (longer)
		*list = longer;
	return longer != NULL;
}

/*
 * Appends the name with and without its final dot. Versions of libcurl differ in which one they
 * look up.
 */
static bool append_host(struct curl_slist **list, const struct host *host)
{
	size_t len = strlen(host->name);

	if (!append(list, host->name, len, host))
		return false;
	return host->name[len - 1] != '.' || append(list, host->name, len - 1, host);
}

int cw_webhook_hosts_apply(const struct cw_webhook_hosts *h, CURL *easy,
			   struct curl_slist **ret_addresses)
{
	struct curl_slist *list = NULL;
	bool can_deny = true, ok = true;
	CURLcode r = CURLE_OK;

	for (unsigned i = 0; i < h->n && ok; i++) {
		/*
		 * CURLOPT_RESOLVE does not accept an IPv6 address as a key. libcurl then calls
		 * on_own_lookup() for it, although it needs no look-up, so we do not set this hook.
		 */
		if (h->hosts[i].family == AF_INET6)
			can_deny = false;
		else
			ok = append_host(&list, &h->hosts[i]);
	}
	r |= curl_easy_setopt(easy, CURLOPT_URL, h->url);
	r |= curl_easy_setopt(easy, CURLOPT_PROXY, h->proxy);
	r |= curl_easy_setopt(easy, CURLOPT_NOPROXY, ""); /* we have already applied no_proxy */
	r |= curl_easy_setopt(easy, CURLOPT_RESOLVE, list);
	if (can_deny)
		r |= curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_own_lookup);
	if (!ok || r != CURLE_OK) {
		curl_slist_free_all(list);
		return -EIO;
	}
	*ret_addresses = list;
	return 0;
}
