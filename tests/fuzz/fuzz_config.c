/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as configuration: accepted with every value in range, or refused with a sentence. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "tests/fuzz/fuzz.h"

static int memfd = -1;
static char path[64];

static void write_file(const uint8_t *data, size_t size)
{
	if (memfd < 0) {
		memfd = memfd_create("fuzz", MFD_CLOEXEC);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	}
	FUZZ_CHECK(memfd >= 0 && ftruncate(memfd, (off_t)size) == 0);
	FUZZ_CHECK(pwrite(memfd, data, size, 0) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_config *config = NULL;
	struct cw_err err = { "" };

	write_file(data, size);
	/* In a child the fuzzer would not see its branches. */
	if (cw_config_load_here(path, &config, &err) < 0) {
		FUZZ_CHECK(err.text[0] != '\0');
		return 0;
	}
	FUZZ_CHECK(config->node_name && config->agent_socket && config->state_dir);
	FUZZ_CHECK(config->n_peers <= CW_CONFIG_MAX_PEERS);
	FUZZ_CHECK(config->stall_min_ns <= config->stall_max_ns);
	cw_config_free(config);
	return 0;
}
