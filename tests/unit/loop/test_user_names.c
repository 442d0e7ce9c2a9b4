/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/user_names.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct event_base *base;
static struct cw_user_names *names;
static struct cw_clock clock_;
static int64_t now;
/* The child writes a byte for each look-up: they are counted where it is read. */
static int asked[2];

static int64_t fake_now(void *user)
{
	return now;
}

static void make(cw_user_look_up_fn look_up)
{
	const struct cw_user_names_config config = { .base = base,
						     .clock = &clock_,
						     .look_up = look_up };

	cr_assert_eq(cw_user_names_new(&config, &names), 0);
}

static void set_up(void)
{
	now = 0; /* a clock may say that, too */
	clock_ = (struct cw_clock){ .monotonic_ns = fake_now, .wall_ns = fake_now };
	base = event_base_new();
	cr_assert_not_null(base);
}

static void tear_down(void)
{
	cw_user_names_free(names);
	event_base_free(base);
}

TestSuite(user_names, .init = set_up, .fini = tear_down, .timeout = 120);

static const char *ask(uint32_t uid)
{
	return cw_user_names_get(names, uid);
}

/* Waits until the name is known, or the look-up has ended. */
static const char *wait_for(uint32_t uid)
{
	const char *name = ask(uid);

	while (!name && event_base_loop(base, EVLOOP_ONCE) == 0)
		name = ask(uid);
	return name;
}

Test(user_names, asks_the_system)
{
	make(NULL);
	cr_assert_null(ask(0), "only a blocking call knows");
	cr_assert_str_eq(wait_for(0), "root");
	cr_assert_null(wait_for(3999999999u), "the system does not know it");
}

static int letter(uid_t uid, char *buf)
{
	buf[0] = (char)('a' + uid % 26);
	buf[1] = '\0';
	return 0;
}

Test(user_names, keeps_each_for_an_hour)
{
	make(letter);
	cr_assert_str_eq(wait_for(2), "c");
	cr_assert_str_eq(wait_for(25), "z");
	now += CW_USER_NAME_NS - 1;
	cr_assert_str_eq(ask(2), "c");
	cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 1, "a query within the hour");
	now++;
	cr_assert_str_eq(ask(2), "c", "the old one stands until there is a new one");
	cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0, "no query after an hour");
}

Test(user_names, many_users_take_turns)
{
	make(letter);
	for (uint32_t uid = 0; uid < 3 * CW_USER_NAMES_MAX; uid++)
		cr_assert_eq(*wait_for(uid), 'a' + uid % 26);
	cr_assert_null(ask(0), "it has made room long ago");
	cr_assert_str_eq(wait_for(0), "a");
}

static int hang(uid_t uid, char *buf)
{
	(void)!write(asked[1], "x", 1);
	for (;;)
		pause();
	return -ETIMEDOUT;
}

Test(user_names, what_hangs_holds_two_children_at_most)
{
	char byte;

	cr_assert_eq(pipe(asked), 0);
	make(hang);
	for (uint32_t uid = 0; uid < 10; uid++)
		for (int again = 0; again < 3; again++)
			cr_assert_null(ask(uid));
	names = cw_user_names_free(names); /* ends and reaps them */
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
	close(asked[1]);
	for (unsigned n = 0; read(asked[0], &byte, 1) == 1; n++)
		cr_assert_lt(n, 2);
	close(asked[0]);
}
