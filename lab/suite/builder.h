/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario while it is drawn: what was drawn so far, and its text. Each draw_*.c draws one sort.
 * Not thread-safe; the same state draws the same.
 */
#pragma once

#include <stdbool.h>

#include "lab/suite/generate.h"

/* Nobody is paged, however long it takes. */
#define DRAW_NO_PAGE UINT32_MAX
/* Whether it is the source of work, and so nobody is paged for it, depends on who waits in what. */
#define DRAW_MAY_PAGE (UINT32_MAX - 1)
/* When a page is due at the latest (docs/design/patience.md#patience). */
#define DRAW_IDLE_PAGE_S 245u
#define DRAW_STORAGE_PAGE_S 305u

struct builder {
	uint64_t state;
	char *text; /* SUITE_DRAWN_BYTES */
	size_t n;
	uint32_t layout; /* enum suite_layout */
	uint32_t n_ranks, per_node;
	bool has_devices; /* its processes drive several, if its sizes and its sort allow that */
	uint32_t per_process; /* ranks that a process is; set by draw_head() */
	uint32_t main_size;
	uint32_t culprit, at_s;
	const char *kind; /* of the call on `main` that goes wrong, if one does */
	bool is_noisy;    /* something harmless comes first */
	bool is_graph;    /* part of the step is a CUDA graph */
	bool loses_node;  /* what is known of it is with whoever leads */
};

/* Nothing is drawn yet. */
struct builder builder_begin(uint64_t seed, uint64_t index, char text[SUITE_DRAWN_BYTES]);
/* low to high, both included. */
uint32_t builder_pick(struct builder *d, uint32_t low, uint32_t high);
bool builder_chance(struct builder *d, uint32_t percent);
const char *builder_kind(struct builder *d);
void builder_put(struct builder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define BUILDER_ONE(d, array) ((array)[builder_pick(d, 0, sizeof(array) / sizeof(*(array)) - 1)])

/*
 * How a rank keeps the others waiting, and in what it sleeps: drawn alike whether the wait ends or
 * not, so that neither the one nor the other tells them apart.
 */
struct draw_wait {
	const char *fault, *statement; /* of a fault; of a program, "%s 10h%s" with `in` */
	const char *in;                /* " in lock", …, or "" */
	bool is_working;               /* it shows host activity */
	bool is_open;    /* it may be given work from outside, as who gives others theirs */
	bool is_person;  /* … by a person, who takes the time that it takes */
	uint32_t page_s; /* when a page is due at the latest; DRAW_NO_PAGE */
};

const struct draw_wait *draw_wait(struct builder *d);

/* ---- jobs (draw_job.c) ---- */

/* Layout, sizes, culprit and time; before anything else. */
void draw_sizes(struct builder *d);
/* Title, layout and ranks; what: a few words. */
void draw_head(struct builder *d, const char *what, uint32_t run_s);
/* Head, comms and a training step that calls d->kind on `main`; now and then a harmless fault. */
void draw_job(struct builder *d, const char *what, uint32_t run_s);
/* Head and comms only, and the body of a step without its loop. */
void draw_comms(struct builder *d);
void draw_step(struct builder *d);
/* What befalls the culprit's process: "4" or "4-7", in a static buffer. */
const char *draw_process(const struct builder *d);
/* fault CULPRIT at TIME on main KIND ACTION */
void draw_fault(struct builder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- one scenario each, to its last line but one ---- */
/* draw_hang.c; nth: which class. */
#define DRAW_HANGS 11u
void draw_hang(struct builder *d, uint32_t nth);
/* draw_slow.c */
void draw_slow(struct builder *d);
void draw_nobody_slow(struct builder *d);
/* draw_several.c; the second healthy */
void draw_several(struct builder *d);
void draw_late_groups(struct builder *d);
/* draw_setup.c */
void draw_differs_in_setup(struct builder *d);
void draw_all_in_making(struct builder *d);
/* A line: something differs, and that is no trouble. */
void draw_difference(struct builder *d);
/*
 * draw_end.c; the last lines of a scenario in which nothing more is drawn: the job ends by itself.
 * A rank has failed, and its launcher ends the others; false: this one has none, nothing is put.
 */
bool draw_ended_by_launcher(struct builder *d, const char *answer);
/* Ranks wait, and some or all of them abort; page_s: when a page is due that comes sooner. */
bool draw_ended_by_watchdog(struct builder *d, uint32_t page_s, const char *answer);
/* … because the network gives up on their connections. */
bool draw_ended_by_errors(struct builder *d, uint32_t page_s, const char *answer);
/* draw_control.c */
void draw_control(struct builder *d);
/* draw_cluster.c; lines beside whatever else the scenario has, where there are several nodes. */
void draw_cluster(struct builder *d);
