/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Releases a resource when its variable goes out of scope.
 *
 *	_cleanup_(freep) char *text = NULL;
 *	_cleanup_(closep) int fd = -1;
 *	*ret_fd = steal_fd(&fd);
 *
 * Not for the agent's hot path, which owns nothing that needs releasing.
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* Moves a pointer out of a cleanup variable, which becomes NULL. */
#define steal_ptr(p)                                                                               \
	({                                                                                         \
		typeof(p) _steal_p = (p);                                                          \
		typeof(*_steal_p) _steal_v = *_steal_p;                                            \
		*_steal_p = NULL;                                                                  \
		_steal_v;                                                                          \
	})

static inline int steal_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* we can do nothing if close() fails */
}
