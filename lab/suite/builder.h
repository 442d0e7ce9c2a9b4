/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random scenario under construction: the properties that we have drawn, and its text. Each
 * draw_*.c draws one sort of scenario. The same state draws the same scenario. Not thread-safe.
 */
#pragma once

#include <stdbool.h>

#include "lab/suite/generate.h"

/* A value of page_s: no page ever comes, however long the wait lasts. */
#define DRAW_NO_PAGE UINT32_MAX
/*
 * A value of page_s: a page may or may not come. No user is paged for an idle rank that gives work
 * to the others. The calls of the waiting ranks decide whether a rank does so.
 */
#define DRAW_MAY_PAGE (UINT32_MAX - 1)
/* The latest time of a page, in seconds (docs/design/patience.md#patience). */
#define DRAW_IDLE_PAGE_S 605u
#define DRAW_STORAGE_PAGE_S 305u

struct builder {
	uint64_t state;
	char *text; /* has SUITE_DRAWN_BYTES */
	size_t n;
	uint32_t layout; /* enum suite_layout */
	uint32_t n_ranks, per_node;
	/* processes drive several devices, if sizes and sort of the scenario allow it */
	bool has_devices;
	uint32_t per_process; /* number of ranks of a process; set by draw_head() */
	uint32_t main_size;
	uint32_t culprit, at_s;
	const char *kind; /* kind of the faulty call on `main`; NULL = there is none */
	bool is_noisy;    /* a harmless fault comes first */
	bool is_graph;    /* part of the step is a CUDA graph */
	bool loses_node;  /* a node is lost, so only the leader's node has its facts */
};

/* Returns a builder with nothing drawn yet. */
struct builder builder_begin(uint64_t seed, uint64_t index, char text[SUITE_DRAWN_BYTES]);
/* Draws a number from low to high, both included. */
uint32_t builder_pick(struct builder *d, uint32_t low, uint32_t high);
bool builder_chance(struct builder *d, uint32_t percent);
const char *builder_kind(struct builder *d);
void builder_put(struct builder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define BUILDER_ONE(d, array) ((array)[builder_pick(d, 0, sizeof(array) / sizeof(*(array)) - 1)])

/*
 * What a rank does, and what it sleeps in, while the others wait for it. Waits that end and waits
 * that never end have the same distribution of these. So they do not show whether a wait is a hang.
 */
struct draw_wait {
	/*
	 * Words for a fault, and a format for a statement of a program: "%s 10h%s", with `in` at
	 * the end.
	 */
	const char *fault, *statement;
	const char *in;  /* " in lock", …, or "" */
	bool is_working; /* the rank shows host activity */
	bool is_open;    /* it may get work from outside, like a rank that passes work to others */
	bool is_person;  /* it waits for a person, who may take any time */
	uint32_t page_s; /* the latest time of a page, or DRAW_NO_PAGE */
};

const struct draw_wait *draw_wait(struct builder *d);

/* ---- jobs (draw_job.c) ---- */

/* Draws layout, sizes, culprit and time. Call it before anything else. */
void draw_sizes(struct builder *d);
/* Writes title, layout and ranks. what: a few words for the title. */
void draw_head(struct builder *d, const char *what, uint32_t run_s);
/*
 * Writes head, comms and a training step that calls d->kind on `main`. Sometimes adds a harmless
 * fault.
 */
void draw_job(struct builder *d, const char *what, uint32_t run_s);
/* draw_comms() writes only head and comms, draw_step() only the body of a step without its loop. */
void draw_comms(struct builder *d);
void draw_step(struct builder *d);
/* Returns the ranks of the culprit's process, "4" or "4-7", in a static buffer. */
const char *draw_process(const struct builder *d);
/* Writes: fault CULPRIT at TIME on main KIND ACTION */
void draw_fault(struct builder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- one scenario each, except for its last line ---- */
/* Draws a hang (draw_hang.c). nth selects the class of the hang, below DRAW_HANGS. */
#define DRAW_HANGS 11u
void draw_hang(struct builder *d, uint32_t nth);
/* Draw a job with a late rank, and a job without one (draw_slow.c). */
void draw_slow(struct builder *d);
void draw_nobody_slow(struct builder *d);
/*
 * Draw groups that share no communicator (draw_several.c). draw_late_groups() draws a healthy job.
 */
void draw_several(struct builder *d);
void draw_late_groups(struct builder *d);
/*
 * Draw jobs whose ranks differ from the start, and jobs whose communicator is never complete
 * (draw_setup.c).
 */
void draw_differs_in_setup(struct builder *d);
void draw_all_in_making(struct builder *d);
/* Writes a line that makes ranks differ in a harmless way. */
void draw_difference(struct builder *d);
/*
 * These functions write the last lines of a scenario whose job ends by itself (draw_end.c). They
 * return false and write nothing if the job cannot end in this way. Here a rank has failed, and its
 * launcher ends the other ranks.
 */
bool draw_ended_by_launcher(struct builder *d, const char *answer);
/*
 * Here ranks wait, and some or all of them abort. page_s: the time of a page, if it comes before
 * that.
 */
bool draw_ended_by_watchdog(struct builder *d, uint32_t page_s, const char *answer);
/*
 * Here ranks wait, and abort because the network gives up on their connections. page_s: the time of
 * a page, if it comes before that.
 */
bool draw_ended_by_errors(struct builder *d, uint32_t page_s, const char *answer);
/* Draws a scenario without a page (draw_control.c). */
void draw_control(struct builder *d);
/* Adds lines to any scenario with several nodes (draw_cluster.c). */
void draw_cluster(struct builder *d);
