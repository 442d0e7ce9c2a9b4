/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of libraries that have NCCL's and other names; the agent's thread is this one's child. */
#include "agent/record/helper_threads.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/record/record.h"
#include "tests/support/agent/thread_home.h"

enum { NCCL, STD, OTHER, N_HOMES };

static const char *const homes[N_HOMES] = { CW_HOME_NCCL, CW_HOME_STD, CW_HOME_OTHER };

struct home {
	int (*start)(struct thread_at_home *t);
	const void *table;
};

static int up[2], down[2];

static void setup(void)
{
	cr_assert_eq(cw_record_create(false), 0);
	cr_assert_eq(pipe(up), 0);
	cr_assert_eq(pipe(down), 0);
	cw_helper_threads_start();
}

TestSuite(agent_helper_threads, .init = setup);

static struct home home_of(unsigned i)
{
	void *lib = dlopen(homes[i], RTLD_NOW | RTLD_LOCAL);
	struct home home;

	cr_assert(lib, "%s", dlerror());
	home.start = (int (*)(struct thread_at_home *))dlsym(lib, "home_start");
	home.table = dlsym(lib, "home_table");
	cr_assert(home.start && home.table);
	return home;
}

static void start(struct thread_at_home *t, unsigned home, unsigned object)
{
	char c;

	*t = (struct thread_at_home){ .up = up[1], .down = down[0] };
	t->table = home_of(object).table;
	cr_assert_eq(home_of(home).start(t), 0);
	cr_assert_eq(read(up[0], &c, 1), 1);
}

/* The thread that looks, as the agent's does: on a stack of glibc's making. */
static void *look(void *arg)
{
	cw_helper_threads_step();
	return arg;
}

static void look_from_a_thread(void)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, look, NULL), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

static bool is_noted(uint32_t tid)
{
	for (unsigned i = 0; i < CW_REC_HELPERS; i++)
		if (cw_record.header->helper_tids[i] == tid)
			return true;
	return false;
}

Test(agent_helper_threads, notes_those_that_nccl_started)
{
	struct thread_at_home nccl, other;

	start(&nccl, NCCL, OTHER);
	start(&other, OTHER, NCCL);
	look_from_a_thread();
	cr_expect(is_noted(nccl.tid));
	cr_expect(cw_helper_threads_has(nccl.tid));
	cr_expect_not(is_noted(other.tid), "a thread of the program's");
	cr_expect_not(cw_helper_threads_has(other.tid));
	cr_expect_not(is_noted((uint32_t)getpid()), "the main thread");
	cr_expect_eq(cw_record.header->helpers_over_limit, 0);
}

/* libstdc++ starts them all: the object that each thread runs identifies it. */
Test(agent_helper_threads, knows_a_std_thread_by_its_object)
{
	struct thread_at_home nccl, other, none;

	start(&nccl, STD, NCCL);
	start(&other, STD, OTHER);
	start(&none, STD, STD);
	none.table = (const void *)8;
	look_from_a_thread();
	cr_expect(is_noted(nccl.tid));
	cr_expect_not(is_noted(other.tid));
	cr_expect_not(is_noted(none.tid), "an object that lies nowhere");
}

Test(agent_helper_threads, forgets_those_that_have_ended)
{
	struct thread_at_home first, second;

	start(&first, NCCL, OTHER);
	look_from_a_thread();
	cr_assert(is_noted(first.tid));
	cr_assert_eq(write(down[1], "x", 1), 1);
	cr_assert_eq(pthread_join(first.thread, NULL), 0);
	start(&second, NCCL, OTHER);
	look_from_a_thread();
	cr_expect(is_noted(second.tid));
	cr_expect_eq(cw_record.header->helper_tids[1], 0, "more than one is noted");
}

Test(agent_helper_threads, counts_those_for_which_there_is_no_room)
{
	static struct thread_at_home threads[CW_REC_HELPERS + 3];

	for (unsigned i = 0; i < CW_REC_HELPERS + 3; i++)
		start(&threads[i], NCCL, OTHER);
	look_from_a_thread();
	cr_expect_eq(cw_record.header->helpers_over_limit, 3);
	cr_expect_neq(cw_record.header->helper_tids[CW_REC_HELPERS - 1], 0);
}

/* The main thread's descriptor lies in another list of glibc's. */
Test(agent_helper_threads, notes_none_where_the_list_is_another)
{
	struct thread_at_home nccl;

	start(&nccl, NCCL, OTHER);
	cw_helper_threads_step();
	cr_expect_eq(cw_record.header->helper_tids[0], 0);
}

static void *busy(void *arg)
{
	while (!__atomic_load_n((bool *)arg, __ATOMIC_RELAXED)) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, look, NULL) == 0)
			(void)pthread_join(thread, NULL);
	}
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

/* Threads come and go while the list is walked: none is noted that is not NCCL's. */
Test(agent_helper_threads, survives_threads_that_come_and_go)
{
	struct thread_at_home nccl;
	bool is_over = false;
	pthread_t walker;

	start(&nccl, NCCL, OTHER);
	cr_assert_eq(pthread_create(&walker, NULL, busy, &is_over), 0);
	for (unsigned i = 0; i < 3000; i++) {
		pthread_t thread;
		uint32_t first;

		cr_assert_eq(pthread_create(&thread, NULL, nothing, NULL), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		first = CW_LOAD(cw_record.header->helper_tids[0]);
		cr_assert(first == 0 || first == nccl.tid);
		cr_assert_eq(CW_LOAD(cw_record.header->helper_tids[1]), 0);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	cr_assert_eq(pthread_join(walker, NULL), 0);
	look_from_a_thread();
	cr_expect(is_noted(nccl.tid));
}
