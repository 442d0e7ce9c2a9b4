/* SPDX-License-Identifier: Apache-2.0 */
/* Finds symbols of this test's own libraries, and none in bytes that are no tables. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "python/reader/loaded_symbols.h"
#include "python/reader/python_runtime.h"

static bool read_own(void *user, uint64_t from, void *to, size_t len)
{
	memcpy(to, (const void *)(uintptr_t)from, len);
	return true;
}

static const struct cw_python_memory own = { .read = read_own };

static uint64_t base_of(const void *function)
{
	Dl_info info;

	cr_assert(dladdr(function, &info));
	return (uintptr_t)info.dli_fbase;
}

Test(loaded_symbols, finds_what_the_loader_finds)
{
	static const char *const names[] = { "malloc", "free", "getpid", "environ", "strtoull" };
	struct cw_loaded_symbols s;

	cr_assert(cw_loaded_symbols_open(&own, base_of(dlsym(RTLD_DEFAULT, "getpid")), &s));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect_neq(cw_loaded_symbols_find(&own, &s, names[i]), 0, "%s", names[i]);
	cr_expect_eq(cw_loaded_symbols_find(&own, &s, "getpid"),
		     (uintptr_t)dlsym(RTLD_DEFAULT, "getpid"));
	cr_expect_eq(cw_loaded_symbols_find(&own, &s, "no_such_function"), 0);
	cr_expect_eq(cw_loaded_symbols_find(&own, &s, ""), 0);
}

Test(loaded_symbols, finds_no_interpreter_where_there_is_none)
{
	uint64_t bases[] = { base_of(dlsym(RTLD_DEFAULT, "getpid")) };
	struct cw_python_runtime runtime;

	cr_expect_eq(cw_python_runtime_find(&own, bases, 1, &runtime), CW_PYTHON_NONE);
	cr_expect_eq(cw_python_runtime_find(&own, bases, 0, &runtime), CW_PYTHON_NONE);
}

/* ---- hostile tables ---- */

#define BASE UINT64_C(0x10000)

struct image {
	uint8_t bytes[8192];
	unsigned n_reads;
};

static bool read_image(void *user, uint64_t from, void *to, size_t len)
{
	struct image *image = user;

	image->n_reads++;
	if (from < BASE || from - BASE > sizeof(image->bytes) ||
	    len > sizeof(image->bytes) - (from - BASE))
		return false;
	memcpy(to, image->bytes + (from - BASE), len);
	return true;
}

/* A library with the tables of libc, so that lookups begin and then lead astray. */
static struct image *copy_of_libc(void)
{
	struct image *image = calloc(1, sizeof(*image));

	memcpy(image->bytes, (const void *)(uintptr_t)base_of(dlsym(RTLD_DEFAULT, "getpid")), 4096);
	return image;
}

Test(loaded_symbols, survives_false_tables)
{
	struct image *image = copy_of_libc();
	struct cw_python_memory memory = { .read = read_image, .user = image };
	struct cw_python_runtime runtime;
	uint64_t base = BASE;

	srand(1);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned at = (unsigned)rand() % 1024;
		uint8_t was = image->bytes[at];

		image->bytes[at] = (uint8_t)rand();
		image->n_reads = 0;
		cr_assert_neq(cw_python_runtime_find(&memory, &base, 1, &runtime), CW_PYTHON_READ);
		cr_assert_leq(image->n_reads, 2000);
		image->bytes[at] = was;
	}
	free(image);
}

/* A table whose chain of names never ends. */
Test(loaded_symbols, follows_no_endless_chain)
{
	struct image *image = calloc(1, sizeof(*image));
	struct cw_python_memory memory = { .read = read_image, .user = image };
	struct cw_loaded_symbols s = {
		.symbols = BASE, .strings = BASE, .hash = BASE, .n_buckets = 1, .first_symbol = 0
	};

	cr_expect_eq(cw_loaded_symbols_find(&memory, &s, "_PyRuntime"), 0);
	cr_expect_leq(image->n_reads, 1000);
	free(image);
}
