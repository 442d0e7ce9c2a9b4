/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child (loop/children.h) writes one record per address. A record is smaller than PIPE_BUF, so it
 * arrives whole.
 */
#include "transport/resolve.h"

#include <cap-ng.h>
#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/address.h"
#include "loop/children.h"

/*
 * Maximum number of addresses per host: two address families, and perhaps two network interfaces.
 */
#define MAX_ADDRESSES 4u
/* While this many children survive SIGKILL, we start no further child. */
#define MAX_ABANDONED 4u

/*
 * The record that the child writes for one address. It is smaller than PIPE_BUF, so it arrives
 * whole.
 */
struct answer {
	uint32_t tag;
	int32_t error; /* result of getaddrinfo() */
	struct sockaddr_storage address;
};

struct cw_resolve {
	struct cw_child *child; /* NULL = the child has ended */
	size_t taken;           /* bytes of the child's output that we have read */
	cw_resolve_fn fn;
	cw_resolve_done_fn done;
	void *user;
};

/* Argument of the child. */
struct order {
	const struct cw_resolve_name *names;
	unsigned n_names;
};

/* ---- the child ---- */

static void put(int fd, const struct answer *a)
{
	if (write(fd, a, sizeof(*a)) != sizeof(*a))
		_exit(1); /* the daemon has closed the pipe */
}

static void answer_one(int fd, const struct cw_resolve_name *name)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_ADDRCONFIG };
	struct answer a = { .tag = name->tag };
	unsigned n_names = 0, max = name->max ? name->max : MAX_ADDRESSES;
	struct addrinfo *list = NULL, *i;

	a.error = getaddrinfo(name->host, NULL, &hints, &list);
	if (a.error)
		list = NULL;
	for (i = list; i && n_names < max; i = i->ai_next) {
		if (!cw_sockaddr_len(i->ai_addr) || i->ai_addrlen > sizeof(a.address))
			continue;
		memcpy(&a.address, i->ai_addr, i->ai_addrlen);
		/* The port has the same offset for IPv4 and IPv6. */
		((struct sockaddr_in *)&a.address)->sin_port = htons(name->port);
		put(fd, &a);
		n_names++;
	}
	if (n_names == 0) {
		a.error = a.error ? a.error : EAI_NONAME;
		put(fd, &a);
	}
	if (list)
		freeaddrinfo(list);
}

static int child_main(int out_fd, const void *arg)
{
	const struct order *order = arg;

	/*
	 * Make the child undumpable, because its memory is a copy of the daemon's. Another process
	 * of its user could otherwise read it once the child has no capabilities.
	 */
	(void)prctl(PR_SET_DUMPABLE, 0);
	/* Drop all capabilities, because the child needs none. */
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		return 1;
	for (unsigned i = 0; i < order->n_names; i++)
		answer_one(out_fd, &order->names[i]);
	return 0;
}

/* ---- the daemon's side ---- */

static void on_more(const char *output, size_t len, void *user)
{
	struct cw_resolve *r = user;
	struct answer a;

	for (; len - r->taken >= sizeof(a); r->taken += sizeof(a)) {
		memcpy(&a, output + r->taken, sizeof(a));
		if (a.error)
			r->fn(a.tag, NULL, gai_strerror(a.error), r->user);
		else
			r->fn(a.tag, (struct sockaddr *)&a.address, NULL, r->user);
	}
}

static void on_child(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_resolve *r = user;

	r->child = NULL;
	r->done(r->user); /* may free r */
}

int cw_resolve_start_within(struct cw_children *children, int64_t limit_ns,
			    const struct cw_resolve_name *names, unsigned n_names, cw_resolve_fn fn,
			    cw_resolve_done_fn done, void *user, struct cw_resolve **ret)
{
	const struct order order = { .names = names, .n_names = n_names };
	struct cw_child_config config = { .main = child_main,
					  .arg = &order,
					  .deadline_ms = (uint32_t)(limit_ns / CW_NS_PER_MS),
					  .fn = on_child,
					  .on_more = on_more };
	struct cw_resolve *r;
	int e;

	if (cw_children_abandoned(children) >= MAX_ABANDONED)
		return -EAGAIN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct cw_resolve){ .fn = fn, .done = done, .user = user };
	config.user = r;
	for (unsigned i = 0; i < n_names; i++)
		config.max_output +=
			(names[i].max ? names[i].max : MAX_ADDRESSES) * sizeof(struct answer);
	e = cw_child_start(children, &config, &r->child);
	if (e < 0) {
		free(r);
		return e;
	}
	*ret = r;
	return 0;
}

int cw_resolve_start(struct cw_children *children, const struct cw_resolve_name *names,
		     unsigned n_names, cw_resolve_fn fn, cw_resolve_done_fn done, void *user,
		     struct cw_resolve **ret)
{
	return cw_resolve_start_within(children, CW_RESOLVE_NS, names, n_names, fn, done, user,
				       ret);
}

struct cw_resolve *cw_resolve_free(struct cw_resolve *r)
{
	if (r && r->child)
		cw_child_cancel(r->child);
	free(r);
	return NULL;
}
