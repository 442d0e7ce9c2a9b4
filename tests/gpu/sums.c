/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/sums.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)
#define DATA_MAX (UINT64_C(1) << 30)

struct memory {
	char *base; /* a page that cannot be read */
	uint64_t bytes;
	char *tensor;
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static uint64_t pages_for(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* One file mapped again and again: a tensor larger than the machine. */
static bool map_again_and_again(char *at, uint64_t bytes, const void *data, uint64_t data_bytes)
{
	int fd = memfd_create("tensor", MFD_CLOEXEC);
	bool ok = fd >= 0 && write(fd, data, data_bytes) == (ssize_t)data_bytes;

	for (uint64_t done = 0; ok && done < bytes; done += data_bytes) {
		uint64_t n = bytes - done < data_bytes ? bytes - done : data_bytes;

		ok = mmap(at + done, n, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool place(struct memory *m, const struct sums_case *c, uint64_t bytes, const void *data)
{
	uint64_t offset = c->offset == SUMS_AT_END ? pages_for(bytes) - bytes : c->offset;
	uint64_t inner = pages_for(offset + bytes);
	bool is_repeated = bytes > c->data_bytes;

	m->bytes = inner + 2 * PAGE;
	m->base =
		mmap(NULL, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->base == MAP_FAILED)
		return false;
	m->tensor = m->base + PAGE + offset;
	if (is_repeated)
		return c->data_bytes % PAGE == 0 && offset == 0 &&
		       map_again_and_again(m->tensor, bytes, data, c->data_bytes);
	if (inner && mprotect(m->base + PAGE, inner, PROT_READ | PROT_WRITE) < 0)
		return false;
	memcpy(m->tensor, data, bytes);
	return true;
}

static int run_case(const struct sums_case *c, const void *data, const sums_engine_fn engines[],
		    unsigned n, uint64_t number)
{
	uint64_t bytes = c->elements * cw_sum_bytes(c->dtype);
	struct memory m;

	if (!place(&m, c, bytes, data))
		return fail("placing a tensor");
	for (unsigned i = 0; i < n; i++) {
		struct sums_result result = { 0 };
		struct cw_summary_args args = {
			.data = (uint64_t)(uintptr_t)m.tensor,
			.elements = c->elements,
			.offered = c->elements,
			.stride_words = c->stride_words,
			.first_word = c->first_word,
			.publish = number,
			.op_index = number * 3,
			.seq = number * 5,
			.comm = 7,
			.comm_generation = 9,
			.slot = (uint32_t)(number % CW_REC_SUMMARY_RING),
			.kind = 1,
			.dtype = (uint8_t)c->dtype,
			.is_output = number % 2,
			.stride_log2_plus_1 = number % 31,
			.step_plus_1 = (uint32_t)(number * 11),
		};
		int r = engines[i](c, &args, &result);

		if (r == SUMS_NOT_COLLECTED)
			result.out.publish = UINT64_MAX;
		else if (r != 0) {
			fprintf(stderr, "case %llu: the driver answers %d\n",
				(unsigned long long)number, r);
			return 1;
		}
		if (fwrite(&result, sizeof(result), 1, stdout) != 1)
			return fail("writing a result");
	}
	munmap(m.base, m.bytes);
	return fflush(stdout) == 0 ? 0 : fail("writing results");
}

int sums_serve(const sums_engine_fn engines[], unsigned n)
{
	struct sums_case c;
	uint64_t number = 0;

	while (fread(&c, sizeof(c), 1, stdin) == 1) {
		void *data;
		int r;

		if (c.data_bytes > DATA_MAX)
			return fail("a case with too much data");
		data = malloc(c.data_bytes + 1);
		if (!data || fread(data, 1, c.data_bytes, stdin) != c.data_bytes)
			return fail("reading a case");
		r = run_case(&c, data, engines, n, ++number);
		free(data);
		if (r != 0)
			return r;
	}
	return ferror(stdin) ? fail("reading cases") : 0;
}
