/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/state.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "common/parse.h"

__thread struct cw_tls cw_tls __attribute__((tls_model("initial-exec")));

static const unsigned char never;
/*
 * Begins the page with the hot data. The linker puts this file first, so this aligned pointer
 * begins the section, which then fills one page.
 */
__attribute__((aligned(4096))) CW_HOT_DATA const volatile unsigned char *cw_armed = &never;

uint32_t cw_tid_ask(void)
{
	cw_tls.tid = (uint32_t)syscall(SYS_gettid);
	return cw_tls.tid;
}

static const char *get_switch(const char *name)
{
	const char *value = getenv(name);
	bool is_on;

	if (value && *value && cw_parse_switch(value, &is_on) < 0)
		cw_log("%s=%.32s: neither on nor off, ignoring", name, value);
	return value;
}

bool cw_agent_is_disabled(void)
{
	static atomic_int answer; /* 0 = variables not read yet, 1 = no, 2 = yes */
	int known = atomic_load_explicit(&answer, memory_order_relaxed);

	if (!known) {
		bool is_off = cw_parse_agent_is_off(get_switch("COLLWATCH"),
						    get_switch("COLLWATCH_DISABLE"));

		known = is_off ? 2 : 1;
		atomic_store_explicit(&answer, known, memory_order_relaxed);
	}
	return known == 2;
}
