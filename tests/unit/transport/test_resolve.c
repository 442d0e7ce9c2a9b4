/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/address.h"
#include "loop/children.h"
#include "transport/resolve.h"

/* State of the child while code of a name service runs in it. */
static struct rights {
	bool is_seen;
	unsigned n_fds;
	uint32_t capabilities;
	int dumpable;
} * rights;

static void see_rights(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	for (int fd = 0; fd < 1024; fd++)
		rights->n_fds += fcntl(fd, F_GETFD) >= 0;
	(void)syscall(SYS_capget, &header, data);
	rights->capabilities = data[0].effective | data[0].permitted | data[0].inheritable |
			       data[1].effective | data[1].permitted;
	rights->dumpable = prctl(PR_GET_DUMPABLE);
	rights->is_seen = true;
}

/* Of the name "rights" it notes what its caller may do; all else the C library answers. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	int (*system)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *,
			 struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");

	if (!node || strcmp(node, "rights") != 0)
		return system(node, service, hints, ret);
	see_rights();
	return EAI_NONAME;
}

struct seen {
	struct event_base *base;
	struct cw_children *children;
	struct cw_resolve *resolve;
	unsigned addresses[3], errors[3], done;
	bool is_right;
};

static struct seen open_loop(void)
{
	struct seen s = { .base = event_base_new() };

	cr_assert_eq(cw_children_new(s.base, &s.children), 0);
	return s;
}

static void close_loop(struct seen *s)
{
	s->children = cw_children_free(s->children);
	event_base_free(s->base);
}

static void on_address(uint32_t tag, const struct sockaddr *address, const char *error, void *user)
{
	struct seen *s = user;

	cr_assert_lt(tag, 3);
	cr_assert_eq(address == NULL, error != NULL);
	s->addresses[tag] += address != NULL;
	s->errors[tag] += error != NULL;
	if (address) /* both families keep the port at the same place */
		s->is_right = cw_sockaddr_is_loopback(address) &&
			      ((const struct sockaddr_in *)address)->sin_port == htons(7411);
}

static void on_done(void *user)
{
	struct seen *s = user;

	s->done++;
	s->resolve = cw_resolve_free(s->resolve); /* allowed from in here */
	(void)event_base_loopbreak(s->base);
}

Test(resolve, names_are_answered_and_the_round_ends_whatever_the_resolver_does)
{
	const struct cw_resolve_name names[] = {
		{ .host = "localhost", .port = 7411, .tag = 2 },
		{ .host = "no-such-host.invalid", .port = 7411, .tag = 1 },
	};
	struct seen s = { .base = NULL };

	/* On a busy machine the limit may come before any answer: then there is more time. */
	for (int64_t ns = CW_RESOLVE_NS; !s.addresses[2] && ns < 64 * CW_RESOLVE_NS; ns *= 2) {
		if (s.base)
			close_loop(&s);
		s = open_loop();
		cr_assert_eq(cw_resolve_start_within(s.children, ns, names, 2, on_address, on_done,
						     &s, &s.resolve),
			     0);
		cr_assert_geq(event_base_dispatch(s.base), 0);
		cr_assert_eq(s.done, 1);
	}
	cr_assert_geq(s.addresses[2], 1);
	cr_assert(s.is_right);
	cr_assert_eq(s.addresses[1], 0);
	cr_assert_leq(s.errors[1], 1); /* none, where the limit came before an answer */
	cr_assert_eq(s.addresses[0] + s.errors[0] + s.errors[2], 0);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
	cr_assert_eq(errno, ECHILD);
	close_loop(&s);
}

Test(resolve, round_can_be_given_up_at_any_time)
{
	const struct cw_resolve_name name = { .host = "localhost", .port = 1, .tag = 0 };
	struct seen s = open_loop();

	cr_assert_eq(cw_resolve_start(s.children, &name, 1, on_address, on_done, &s, &s.resolve),
		     0);
	cw_resolve_free(s.resolve);
	(void)event_base_loop(s.base, EVLOOP_NONBLOCK);
	cr_assert_eq(s.done + s.addresses[0], 0);
	close_loop(&s);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
}

Test(resolve, who_asks_has_neither_descriptors_nor_capabilities_of_the_daemon)
{
	const struct cw_resolve_name name = { .host = "rights", .port = 1, .tag = 0 };
	struct seen s = open_loop();
	int pair[2];

	rights = mmap(NULL, sizeof(*rights), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(rights, MAP_FAILED);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(pipe(pair), 0); /* not even close-on-exec */
	cr_assert_eq(cw_resolve_start(s.children, &name, 1, on_address, on_done, &s, &s.resolve),
		     0);
	cr_assert_geq(event_base_dispatch(s.base), 0);
	cr_assert_eq(s.done, 1);
	cr_assert(rights->is_seen);
	cr_assert_leq(rights->n_fds, 4, "%u", rights->n_fds);
	cr_assert_eq(rights->capabilities, 0, "%x", rights->capabilities);
	cr_assert_eq(rights->dumpable, 0, "others of its user may look into it");
	close_loop(&s);
}
