/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the frames of a collwatch.evidence/1 document: the program's own frames, and those
 * of an interpreter, a library, or the start of a thread. Documents may be hostile. No function
 * here fails.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * True if the native frame belongs to an interpreter (first function) or to the start of a thread
 * (second).
 */
bool frame_is_interpreter(const json_t *frame);
bool frame_is_startup(const json_t *frame);

/*
 * True if the frame does not show the program's position: it has no name, or it belongs to the C
 * library, the startup code or an interpreter.
 */
bool frame_is_folded_native(const json_t *frame);

/*
 * True if frame_is_folded_native() is true, or if the frame belongs to PyTorch, NCCL, the driver or
 * its runtime.
 */
bool frame_is_library_native(const json_t *frame);

/* True for a Python frame of the standard library, torch or another well-known package. */
bool frame_is_library_python(const json_t *frame);

/*
 * Returns the index of the innermost Python frame of the user's own code. Without such a frame,
 * returns the innermost frame outside torch and the standard library. If that does not exist
 * either, returns the size of frames.
 */
size_t frame_innermost_python(const json_t *frames);

/*
 * Returns the thread that evidence is about: the thread that crashed, if the stacks are those of a
 * core file, otherwise the main thread.
 */
json_int_t cw_frame_shown_tid(const json_t *evidence);

/*
 * Returns "SIGSEGV" if the evidence has the stacks of a core file. Returns "" for a process that
 * left no such file, and NULL for a process that lived.
 */
const char *cw_frame_crash(const json_t *evidence, char *buf, size_t len);

/*
 * Returns the most informative Python thread. After a crash, it is the thread that crashed.
 * Otherwise it is the thread that holds the interpreter lock, or else the main thread. The main
 * thread is the last in the list, because CPython lists the newest first. NULL = the evidence has
 * no such thread. Borrowed.
 */
const json_t *cw_frame_python_thread(const json_t *evidence);

/*
 * Returns the frames of the thread that crashed: its Python frames or, if it has none, its native
 * ones (*ret_is_python). NULL = there are none. Borrowed.
 */
const json_t *cw_frame_crash_frames(const json_t *evidence, bool *ret_is_python);

/* Writes "read_sample (train_loop.py:88)" or "abort (libc.so.6)". Returns buf. */
char *cw_frame_text(const json_t *frame, bool is_python, char *buf, size_t len);

/* Return the "proc" facts about the main thread, or about the thread tid. NULL = none. Borrowed. */
const json_t *frame_proc_main(const json_t *evidence);
const json_t *frame_proc_thread(const json_t *evidence, json_int_t tid);

/*
 * Writes the most informative line about a process's position: "read_sample (train_loop.py:88),
 * called by train (:505)".
 *
 * The line names the innermost Python frame according to frame_innermost_python(). Without a Python
 * frame, it names the innermost native frame outside the C library. If that frame is inside NCCL or
 * the driver, it names the outermost frame of that call. It is "" without any frame. The caller is
 * the nearest informative one: we skip "__next__" if we know another. Returns buf.
 */
char *cw_evidence_position(const json_t *evidence, char *buf, size_t len);

/*
 * Writes the position without the caller: "read_sample (train_loop.py:88)". Its choice of frame is
 * that of cw_evidence_position(). Returns buf.
 */
char *frame_place(const json_t *evidence, char *buf, size_t len);

/*
 * Writes the kernel's facts about the main thread: "sleeps uninterruptibly (state D) in fsync();
 * has not run for 41 s; in the kernel in folio_wait_bit ← ext4_sync_file; waits for ext4 on device
 * 8:1 (/dev/sda1): /ckpt/last.pt". Unknown facts are omitted; "" if all are unknown. Returns buf.
 */
char *cw_evidence_kernel(const json_t *evidence, char *buf, size_t len);
