/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/wait.h>

#include "cluster/resolve.h"
#include "common/address.h"

struct seen {
	struct event_base *base;
	struct cw_resolve *resolve;
	unsigned addresses[3], errors[3], done;
	bool is_right;
};

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
			event_base_free(s.base);
		s = (struct seen){ .base = event_base_new() };
		cr_assert_eq(cw_resolve_start_within(s.base, ns, names, 2, on_address, on_done, &s,
						     &s.resolve),
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
	event_base_free(s.base);
}

Test(resolve, round_can_be_given_up_at_any_time)
{
	const struct cw_resolve_name name = { .host = "localhost", .port = 1, .tag = 0 };
	struct seen s = { .base = event_base_new() };

	cr_assert_eq(cw_resolve_start(s.base, &name, 1, on_address, on_done, &s, &s.resolve), 0);
	cw_resolve_free(s.resolve);
	(void)event_base_loop(s.base, EVLOOP_NONBLOCK);
	cr_assert_eq(s.done + s.addresses[0], 0);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
	event_base_free(s.base);
}
