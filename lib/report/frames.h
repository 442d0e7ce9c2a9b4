/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the frames of a collwatch.evidence/1 document are: the program's own, or those of an
 * interpreter, a library, the start of a thread. Documents may be hostile; nothing here fails.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Native frames. */
bool frame_is_interpreter(const json_t *frame);
bool frame_is_startup(const json_t *frame);

/* One that says nothing about where the program is: no name, C library, startup, interpreter. */
bool frame_is_folded_native(const json_t *frame);

/* A Python frame of the standard library, torch or another well-known package. */
bool frame_is_library_python(const json_t *frame);

/*
 * The index of the innermost Python frame of the user's own; without one, of the innermost outside
 * torch and the standard library; without that, the size of frames.
 */
size_t frame_innermost_python(const json_t *frames);

/*
 * The Python thread that says most: the one that holds the interpreter, else the main thread, which
 * is the last (CPython lists the newest first). NULL = none. Borrowed.
 */
const json_t *cw_frame_python_thread(const json_t *evidence);

/* The "proc" facts about the main thread, and about any; NULL = none. Borrowed. */
const json_t *frame_proc_main(const json_t *evidence);
const json_t *frame_proc_thread(const json_t *evidence, json_int_t tid);

/*
 * The one line that says most about where a process is, "read_sample (train_loop.py:88), called by
 * train (:505)": the innermost Python frame that frame_innermost_python() finds, else the innermost
 * native one outside the C library, and of those inside NCCL and the driver the call itself; ""
 * without any. The caller is the nearest that says something: "__next__" is left out where another
 * one is known. Returns buf.
 */
char *cw_evidence_position(const json_t *evidence, char *buf, size_t len);

/* The same without the caller, "read_sample (train_loop.py:88)". Returns buf. */
char *frame_place(const json_t *evidence, char *buf, size_t len);

/*
 * The kernel's word on the main thread, "sleeps uninterruptibly (state D) in fsync(); has not run
 * for 41 s; in the kernel in folio_wait_bit ← ext4_sync_file; waits for ext4 on device 8:1
 * (/dev/sda1): /ckpt/last.pt"; as much of it as is known, "" without any. Returns buf.
 */
char *cw_evidence_kernel(const json_t *evidence, char *buf, size_t len);
