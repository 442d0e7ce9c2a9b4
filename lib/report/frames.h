/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the frames of a collwatch.evidence/1 document: the program's own, or those of an
 * interpreter, a library, the start of a thread. Documents may be hostile; no function here fails.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* For native frames. */
bool frame_is_interpreter(const json_t *frame);
bool frame_is_startup(const json_t *frame);

/*
 * True if the frame says nothing about the program's position: no name, C library,
 * startup, interpreter.
 */
bool frame_is_folded_native(const json_t *frame);

/* A Python frame of the standard library, torch or another well-known package. */
bool frame_is_library_python(const json_t *frame);

/*
 * The index of the innermost Python frame of the user's own code. Without such a frame, of the
 * innermost one outside torch and the standard library; without that too, the size of frames.
 */
size_t frame_innermost_python(const json_t *frames);

/*
 * The most informative Python thread: the one holding the interpreter, else the main thread, which
 * is the last (CPython lists the newest first). NULL = none. Borrowed.
 */
const json_t *cw_frame_python_thread(const json_t *evidence);

/* The "proc" facts about the main thread, and about the thread tid; NULL = none. Borrowed. */
const json_t *frame_proc_main(const json_t *evidence);
const json_t *frame_proc_thread(const json_t *evidence, json_int_t tid);

/*
 * The most informative line about a process's position, "read_sample (train_loop.py:88), called by
 * train (:505)". It names the innermost Python frame according to frame_innermost_python(), else
 * the innermost native frame outside the C library; of frames inside NCCL and the driver, the call
 * itself. "" without any frame. The caller is the nearest informative one: we skip "__next__" if we
 * know another caller. Returns buf.
 */
char *cw_evidence_position(const json_t *evidence, char *buf, size_t len);

/* The same without the caller, "read_sample (train_loop.py:88)". Returns buf. */
char *frame_place(const json_t *evidence, char *buf, size_t len);

/*
 * The kernel's description of the main thread, "sleeps uninterruptibly (state D) in fsync(); has
 * not run for 41 s; in the kernel in folio_wait_bit ← ext4_sync_file; waits for ext4 on device 8:1
 * (/dev/sda1): /ckpt/last.pt". It contains the known parts only, "" without any. Returns buf.
 */
char *cw_evidence_kernel(const json_t *evidence, char *buf, size_t len);
