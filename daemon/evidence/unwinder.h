/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns copied stacks into frames. libdwfl works on the copy, so it needs no live process. Both the
 * stacks and the ELF files may be hostile. This code therefore runs in a confined child
 * (daemon/evidence/stack_confine.h). The child's end frees the memory that libdw leaks.
 */
#pragma once

#include <jansson.h>

#include "daemon/evidence/stack_modules.h"
#include "daemon/evidence/stack_take.h"

#define CW_STACK_MAX_FRAMES 128u

struct cw_unwinder;

/* Borrows copy and mods for the unwinder's life. Returns 0 or -errno. */
int cw_unwinder_new(const struct cw_stack_copy *copy, struct cw_stack_modules *mods,
		    struct cw_unwinder **ret);
struct cw_unwinder *cw_unwinder_free(struct cw_unwinder *u);

/*
 * Returns the frames of copy->threads[i], innermost first, in the form of docs/schemas.md. There is
 * at least one frame, that of the pc. New reference; NULL = out of memory.
 */
json_t *cw_unwinder_frames(struct cw_unwinder *u, uint32_t i);
