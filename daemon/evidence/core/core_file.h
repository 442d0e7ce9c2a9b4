/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file of core(5), as Linux writes it: the registers of all threads, the memory that the
 * process had, and the files that it had mapped. The file is hostile: its user may have written it.
 * Each list has a limit, and we read only the parts that a caller requests.
 *
 * Any thread; blocks while it reads the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CW_CORE_MAX_THREADS 64u
#define CW_CORE_MAX_SEGMENTS 65535u
#define CW_CORE_MAX_FILES 4096u
/* Limit of the notes. 1,024 threads with large vector registers take 3 MiB. */
#define CW_CORE_MAX_NOTES (16u << 20)
/* Registers by their DWARF numbers, as in daemon/evidence/stack_take.h. */
#define CW_CORE_REGS 32u

struct cw_core_thread {
	pid_t tid; /* in the process's own pid namespace */
	uint64_t pc, sp;
	uint64_t regs[CW_CORE_REGS];
};

/* A mapping of a file. */
struct cw_core_mapping {
	uint64_t start, end, offset;
	const char *path;
};

struct cw_core_file {
	int fd; /* borrowed */
	uint64_t size;
	/* The thread that got the fatal signal comes first. */
	struct cw_core_thread threads[CW_CORE_MAX_THREADS];
	uint32_t n_threads, n_more_threads; /* n_more_threads: beyond the limit */
	int signal;
	pid_t pid; /* in the process's own pid namespace; 0 = unknown */
	struct cw_core_segment *segments;
	uint32_t n_segments;
	struct cw_core_mapping *mappings; /* in ascending order of addresses */
	uint32_t n_mappings;
	char *notes;
	bool is_cut; /* the file is shorter than its tables say */
};

/*
 * Reads the tables of the file. Returns 0, -ENOMEM, or -EBADMSG: it is no core file of this
 * machine.
 */
int cw_core_file_open(int fd, struct cw_core_file *ret);
void cw_core_file_fini(struct cw_core_file *core);

/*
 * Reads memory of the process. Returns the number of bytes from addr on that the file has, at most
 * len. The kernel omits pages that equal a mapped file.
 */
size_t cw_core_file_read(const struct cw_core_file *core, uint64_t addr, void *buf, size_t len);

/* Returns the mapping that contains the address; NULL = none. */
const struct cw_core_mapping *cw_core_file_mapping(const struct cw_core_file *core, uint64_t addr);
