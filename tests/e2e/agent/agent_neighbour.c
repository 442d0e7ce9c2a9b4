/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of three libraries (NAME a, b or c) that all define neighbour(). Each looks for it
 * behind itself and from the start: the result depends on the caller, and a dlsym in
 * between may spoil that.
 */
#include <dlfcn.h>
#include <stddef.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

typedef const char *(*neighbour_fn)(void);

const char *neighbour(void);
const char *JOIN(next_of_, NAME)(void);
const char *JOIN(first_of_, NAME)(void);
const char *JOIN(libc_of_, NAME)(void);

const char *neighbour(void)
{
	return TEXT(NAME);
}

static const char *ask(neighbour_fn fn)
{
	return fn ? fn() : "nobody";
}

const char *JOIN(next_of_, NAME)(void)
{
	return ask((neighbour_fn)dlsym(RTLD_NEXT, "neighbour"));
}

const char *JOIN(first_of_, NAME)(void)
{
	return ask((neighbour_fn)dlsym(RTLD_DEFAULT, "neighbour"));
}

/* Names a preloaded library wraps, and names that begin as NCCL's do. */
const char *JOIN(libc_of_, NAME)(void)
{
	int found = (dlsym(RTLD_NEXT, "malloc") != NULL) + (dlsym(RTLD_NEXT, "getppid") != NULL) +
		    (dlsym(RTLD_DEFAULT, "ncclFromTheFuture") != NULL) +
		    (dlsym(RTLD_DEFAULT, "nccl") != NULL) + (dlsym(RTLD_NEXT, "nccl") != NULL);

	return found == 2 && dlerror() != NULL && dlerror() == NULL ? "right" : "wrong";
}
