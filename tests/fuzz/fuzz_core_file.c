/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file that its user may have written: tables within their limits, and reads within the
 * file. A short input is a core pattern of the kernel, too.
 */
#include <errno.h>
#include <string.h>

#include "daemon/evidence/core/core_file.h"
#include "daemon/evidence/core/core_pattern.h"
#include "tests/fuzz/fuzz.h"

#define MAX_DIR 4096u

static void check_mappings(const struct cw_core_file *core)
{
	FUZZ_CHECK(core->n_mappings <= CW_CORE_MAX_FILES);
	for (uint32_t i = 0; i < core->n_mappings; i++) {
		const struct cw_core_mapping *m = &core->mappings[i];

		FUZZ_CHECK(m->start < m->end && strlen(m->path) < CW_CORE_MAX_NOTES);
		FUZZ_CHECK(i == 0 || core->mappings[i - 1].start <= m->start);
		(void)cw_core_file_mapping(core, m->start);
		(void)cw_core_file_mapping(core, m->end);
	}
	FUZZ_CHECK(!cw_core_file_mapping(core, UINT64_MAX));
}

static void check_reads(const struct cw_core_file *core)
{
	char buf[64];

	for (uint32_t i = 0; i < core->n_threads; i++) {
		const uint64_t at[] = { core->threads[i].sp, core->threads[i].pc,
					core->threads[i].sp - sizeof(buf) / 2, UINT64_MAX - 8 };

		for (size_t k = 0; k < sizeof(at) / sizeof(at[0]); k++)
			FUZZ_CHECK(cw_core_file_read(core, at[k], buf, sizeof(buf)) <= sizeof(buf));
	}
}

static void expand(const uint8_t *data, size_t size)
{
	const struct cw_core_subject subject = { .pid = 4242,
						 .own_pid = 17,
						 .uid = 1000,
						 .gid = 100,
						 .cwd = size % 2 ? "" : "/home/user",
						 .host = "node-a" };
	char pattern[CW_CORE_NAME_MAX], dir[MAX_DIR], name[CW_CORE_NAME_MAX];

	memcpy(pattern, data, size);
	pattern[size] = '\0';
	if (cw_core_pattern_expand(pattern, size % 3 == 0, &subject, dir, name) != CW_CORE_FILE)
		return;
	FUZZ_CHECK(memchr(dir, '\0', sizeof(dir)) && memchr(name, '\0', sizeof(name)));
	FUZZ_CHECK(!strchr(name, '/'));
	(void)cw_core_pattern_fits(name, pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_core_file core;
	int r = cw_core_file_open(fuzz_file(data, size), &core);

	if (r == 0) {
		FUZZ_CHECK(core.size == size && core.n_threads <= CW_CORE_MAX_THREADS);
		FUZZ_CHECK(core.n_segments <= CW_CORE_MAX_SEGMENTS);
		check_mappings(&core);
		check_reads(&core);
		cw_core_file_fini(&core);
	} else {
		FUZZ_CHECK(r == -EBADMSG || r == -ENOMEM);
	}
	if (size < CW_CORE_NAME_MAX)
		expand(data, size);
	return 0;
}
