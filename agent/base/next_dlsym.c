/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/next_dlsym.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* dlsym_stub.S reads this hidden symbol. */
_Atomic(cw_dlsym_fn) cw_next_dlsym;

static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };

cw_dlsym_fn cw_next_dlsym_get(void)
{
	cw_dlsym_fn next = atomic_load_explicit(&cw_next_dlsym, memory_order_relaxed);

	if (__builtin_expect(!next, 0))
		next = (cw_dlsym_fn)cw_dlsym_bootstrap();
	return next;
}

void *cw_dlsym_bootstrap(void)
{
	int saved_errno = errno;
	void *p = NULL;

	for (unsigned i = 0; i < sizeof(versions) / sizeof(versions[0]) && !p; i++)
		p = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	(void)dlerror();
	atomic_store_explicit(&cw_next_dlsym, (cw_dlsym_fn)p, memory_order_relaxed);
	errno = saved_errno;
	return p;
}
