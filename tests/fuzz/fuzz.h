/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A property that must hold for every input: a violation is a crash, with the input kept. */
#define FUZZ_CHECK(ok)                                                                             \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			(void)fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #ok);   \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
