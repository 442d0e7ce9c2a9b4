/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C half of the exported dlsym; dlsym_stub.S is the other half. This half decides the result
 * for names that begin with "nccl", "cuG" or "cuS". For all other names the stub jumps to the next
 * dlsym and leaves the caller's return address in place. RTLD_NEXT and RTLD_DEFAULT depend on that
 * address.
 */
#include <dlfcn.h>
#include <errno.h>

#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"
#include "agent/hooks/cuda_hooks.h"
#include "agent/hooks/real.h"

void *cw_dlsym_nccl(void *handle, const char *name);

/*
 * Decides the result for a name of NCCL. Returns NULL if the next dlsym must answer. Returns
 * CW_ABSENT if the symbol must look absent; dlerror is then set. Otherwise returns the function to
 * return.
 *
 * We leave RTLD_NEXT to the next dlsym. The caller may be a wrapper that searches for the function
 * behind itself. Otherwise it is an application, which needs the plain search order, and that order
 * includes us.
 */
static void *nccl_symbol(void *handle, const char *name)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	int index, set;
	void *found;

	if (!next || handle == RTLD_NEXT)
		return NULL;
	index = cw_real_index(name);
	if (index < 0)
		return NULL;
	if (handle == RTLD_DEFAULT) {
		/*
		 * The global scope contains our wrapper, so the next dlsym finds it. We only check
		 * that a real function exists.
		 */
		if (cw_real_member(cw_real_linked(), (unsigned)index))
			return NULL;
		(void)next(RTLD_NEXT, name);
		return CW_ABSENT;
	}
	found = next(handle, name);
	if (!found)
		return NULL;
	if (found == cw_wrapper(0, (unsigned)index)) {
		if (cw_real_member(cw_real_linked(), (unsigned)index))
			return found;
		(void)next(RTLD_NEXT, name);
		return CW_ABSENT;
	}
	if (cw_agent_is_disabled())
		return NULL;
	set = cw_real_set_of(handle, (unsigned)index, found);
	(void)dlerror();
	return set < 0 ? found : cw_wrapper((unsigned)set, (unsigned)index);
}

/* Decides the result for a name of the driver, like nccl_symbol(). */
static void *cuda_symbol(void *handle, const char *name)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	void *p = next ? cw_cuda_symbol(next, handle, name) : NULL;

	if (p == CW_ABSENT)
		(void)next(RTLD_NEXT, name);
	return p;
}

void *cw_dlsym_nccl(void *handle, const char *name)
{
	int saved_errno = errno;
	void *p = *name == 'n' ? nccl_symbol(handle, name) : cuda_symbol(handle, name);

	errno = saved_errno;
	return p;
}
