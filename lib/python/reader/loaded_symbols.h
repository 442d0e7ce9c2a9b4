/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds exported symbols of a program or library in the memory of the process that loaded the file.
 * We use the tables that the loader uses, so we open no file. The tables are hostile. A lookup
 * reads at most some ten kilobytes, and a false table gives no symbol or a wrong address.
 *
 * Needs DT_GNU_HASH, which all linkers of the last ten years write. 64-bit little-endian only.
 *
 * Any thread; reads through the given memory only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "python/python_memory.h"

struct cw_loaded_symbols {
	uint64_t bias; /* number that the loader added to the addresses in the file */
	uint64_t symbols, strings, hash;
	uint32_t n_buckets, first_symbol, n_filter;
};

/*
 * Reads the tables of the ELF file that is mapped at `base`. Returns false if the file has no such
 * tables.
 */
bool cw_loaded_symbols_open(const struct cw_python_memory *memory, uint64_t base,
			    struct cw_loaded_symbols *ret);

/* Finds a symbol that the file defines. Returns its address; 0 = none. */
uint64_t cw_loaded_symbols_find(const struct cw_python_memory *memory,
				const struct cw_loaded_symbols *symbols, const char *name);
