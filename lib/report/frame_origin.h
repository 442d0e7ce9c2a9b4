/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the origin of a Python frame from the name of its package. The directory alone proves
 * nothing: a trainer may be an installed package, and a library may lie in any directory.
 */
#pragma once

/* Origins of a frame. A report prefers the lower value. */
enum frame_origin {
	FRAME_OWN,     /* the user's own code */
	FRAME_LIBRARY, /* a well-known package, such as numpy or transformers */
	FRAME_RUNTIME, /* the standard library, torch, NCCL's bindings, our own hooks */
};

/*
 * Returns the origin of a frame. file: the name that CPython gives: a path, or "<frozen runpy>". A
 * colon and more text may follow it.
 */
enum frame_origin frame_origin(const char *file);
