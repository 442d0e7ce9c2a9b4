/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another preloaded library, as profilers and sanitisers of other people are: it wraps getppid()
 * and malloc() and looks behind itself with RTLD_NEXT; built with -DHOOK_DLSYM it wraps dlsym as
 * well.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

pid_t getppid(void)
{
	pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getppid");

	return next && next != getppid ? next() + 1000000 : -1;
}

static _Alignas(16) char early[1 << 16]; /* memory for dlsym itself; never freed */

void *malloc(size_t size)
{
	static void *(*next)(size_t);
	static size_t used;
	static int looking;

	if (!next && !looking) {
		looking = 1;
		next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
		looking = 0;
	}
	if (!next && size <= sizeof(early) - used) {
		void *p = early + used;

		used += (size + 15) & ~(size_t)15;
		return p;
	}
	return next && next != malloc ? next(size) : NULL;
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
