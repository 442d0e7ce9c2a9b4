/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/secret.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20)

static bool is_filled(const unsigned char *p, size_t n, unsigned char with)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != with)
			return false;
	return true;
}

/* Sizes beside powers of two, from one byte to beyond what blocks are cut for. */
Test(secret, blocks_are_aligned_zeroed_and_their_own)
{
	static const size_t sizes[] = { 0, 1, 47, 48, 49, 4000, 65519, 65520, 65521, LARGE };
	enum { N = sizeof(sizes) / sizeof(sizes[0]) };
	unsigned char *p[N];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < N; i++) {
			p[i] = cw_secret_calloc(1, sizes[i]);
			cr_assert_not_null(p[i]);
			cr_assert_eq((uintptr_t)p[i] % 16, 0);
			cr_assert(is_filled(p[i], sizes[i], 0), "%zu", sizes[i]);
			memset(p[i], (int)(i + 1), sizes[i]);
		}
		for (unsigned i = 0; i < N; i++) {
			cr_assert(is_filled(p[i], sizes[i], (unsigned char)(i + 1)));
			cw_secret_free(p[i]);
		}
	}
}

Test(secret, what_grows_keeps_what_it_held)
{
	size_t n = 1;
	unsigned char *p = cw_secret_realloc(NULL, n);

	memset(p, 'a', n);
	for (; n < LARGE; n *= 3) {
		p = cw_secret_realloc(p, n * 3);
		cr_assert_not_null(p);
		cr_assert(is_filled(p, n, 'a'));
		memset(p, 'a', n * 3);
	}
	cr_assert_eq(cw_secret_realloc(p, 5), p);
	cw_secret_free(p);
	cw_secret_free(NULL);
}

Test(secret, sizes_that_overflow_are_refused)
{
	cr_assert_null(cw_secret_malloc(SIZE_MAX));
	cr_assert_null(cw_secret_malloc(SIZE_MAX - 8));
	cr_assert_null(cw_secret_calloc(SIZE_MAX / 2, 3));
}

Test(secret, a_child_finds_zeros_and_may_go_on)
{
	char *small = cw_secret_strdup("a token"), *large = cw_secret_malloc(LARGE), *own;
	char *given_back = cw_secret_strdup("another");
	int status;
	pid_t child;

	cr_assert(small && large && given_back);
	memset(large, 'x', LARGE);
	cw_secret_free(given_back);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		if (!is_filled((unsigned char *)small, 8, 0) ||
		    !is_filled((unsigned char *)large, LARGE, 0))
			_exit(1);
		cw_secret_free(small);
		cw_secret_free(large);
		own = cw_secret_strdup("its own");
		if (!own || strcmp(own, "its own") != 0)
			_exit(2);
		own = cw_secret_realloc(small, 100);
		_exit(own && is_filled((unsigned char *)own, 100, 0) ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_str_eq(small, "a token");
	cr_assert(is_filled((unsigned char *)large, LARGE, 'x'));
	cw_secret_free(small);
	cw_secret_free(large);
}

/* "wf": wiped by a fork; "dd": not in a core dump. */
Test(secret, its_pages_are_kept_out_of_core_dumps)
{
	char *p = cw_secret_strdup("a token"), line[512];
	FILE *f = fopen("/proc/self/smaps", "re");
	uintptr_t from = 0, to = 0;
	bool is_here = false, is_seen = false;

	cr_assert(p && f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			is_here = (uintptr_t)p >= from && (uintptr_t)p < to;
		if (!is_here || strncmp(line, "VmFlags:", 8) != 0)
			continue;
		is_seen = true;
		cr_expect(strstr(line, " dd") && strstr(line, " wf"), "%s", line);
	}
	cr_assert(is_seen);
	(void)fclose(f);
	cw_secret_free(p);
}

/* ---- registers ---- */

#define TOKEN_LEN 24u
/* Of the handler; all registers take 2.6 KiB with AVX-512. */
#define STACK_BYTES ((size_t)64 << 10)

static unsigned char handler_stack[STACK_BYTES];
static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
	handled = 1;
}

/* Eight bytes of the token: a register's halves may be kept apart. */
static bool is_part(const unsigned char *at)
{
	for (unsigned i = 0; i + 8 <= TOKEN_LEN; i++) {
		bool is_same = true;

		for (unsigned k = 0; k < 8; k++)
			is_same = is_same && at[k] == (unsigned char)('A' + i + k);
		if (is_same)
			return true;
	}
	return false;
}

/* A signal puts all of them onto the stack, where children find them. */
Test(secret, a_copy_leaves_nothing_in_registers)
{
	stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	volatile char token[TOKEN_LEN + 1] = "";
	char *copy;

	cr_assert_eq(sigaltstack(&stack, NULL), 0);
	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
	for (unsigned i = 0; i < TOKEN_LEN; i++)
		token[i] = (char)('A' + i);
	copy = cw_secret_strdup((const char *)token);
	cr_assert_eq(kill(getpid(), SIGUSR1), 0);
	cr_assert(handled);
	for (unsigned i = 0; i < TOKEN_LEN; i++)
		cr_assert_eq(copy[i], (char)('A' + i));
	cr_assert_eq(copy[TOKEN_LEN], '\0');
	for (size_t i = 0; i + 8 <= STACK_BYTES; i++)
		cr_assert_not(is_part(handler_stack + i), "at %zu", i);
	cw_secret_free(copy);
}
