/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another preloaded library, as profilers and sanitisers of other people are: it wraps getppid()
 * and looks behind itself with RTLD_NEXT; built with -DHOOK_DLSYM it wraps dlsym as well.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

pid_t getppid(void)
{
	pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getppid");

	return next && next != getppid ? next() + 1000000 : -1;
}

#ifdef HOOK_DLSYM
void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);
	static unsigned long count;

	if (!next)
		next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	count++;
	/* As a C function: RTLD_NEXT is then relative to this library, which is right for it. */
	return next(handle, name);
}
#endif
