/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which code a Python frame belongs to, by the name of its package. The directory alone proves
 * nothing: a trainer may be an installed package, and a library may lie in any directory.
 */
#pragma once

/* Origins in order of interest. */
enum frame_origin {
	FRAME_OWN,     /* the user's */
	FRAME_LIBRARY, /* a well-known package, such as numpy or transformers */
	FRAME_RUNTIME, /* the standard library, torch, NCCL's bindings, our own hooks */
};

/*
 * file: the name that CPython gives, a path or "<frozen runpy>". Text may follow it after a colon.
 */
enum frame_origin frame_origin(const char *file);
