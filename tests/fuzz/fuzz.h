/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of the fuzz targets. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A property that must hold for every input: a violation is a crash, with the input kept. */
#define FUZZ_CHECK(ok)                                                                             \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			(void)fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #ok);   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The input as a file in memory, the same descriptor for all runs; the target's own. */
static inline int fuzz_file(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	FUZZ_CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
