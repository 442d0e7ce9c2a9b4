/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the current calls of this node's ranks. We fetch the daemon's totals of ops
 * (collwatch.ops/1) repeatedly and print their growth between two fetches. Ranks that come late are
 * listed above these lines.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/control.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "cli/verbs/render_ops.h"
#include "cli/verbs/render_status.h"
#include "common/clock.h"
#include "report/json_util.h"

#define TIMEOUT_MS 5000
/*
 * Seconds between two fetches. It is longer than a second, because the daemon updates its totals
 * once a second.
 */
#define EVERY_S 2

enum { OPT_ONCE = 256 };

struct top_args {
	struct cw_ask_options ask;
	bool once;
};

/* The daemon's answers at one moment. */
struct sample {
	json_t *ops, *status;
	int64_t at_ns;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct top_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->ask;
		return 0;
	case OPT_ONCE:
		args->once = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\": all jobs are shown", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_top = {
	.options =
		(const struct argp_option[]){
			{ "once", OPT_ONCE, NULL, 0, "Show two seconds, then end", 0 }, { 0 } },
	.parser = parse_opt,
	.children = cw_ask_children,
	.doc = "Show the current calls of this node's ranks, every two seconds, until "
	       "Ctrl-C.\vExit status: 0 shown, 1 no answer.",
};

static void sample_fini(struct sample *s)
{
	json_decref(s->ops);
	json_decref(s->status);
	*s = (struct sample){ 0 };
}

static int sample_take(const char *control, struct sample *ret, struct cw_err *err)
{
	uint32_t code;
	int r = cw_control_ask(control, "ops", NULL, TIMEOUT_MS, &ret->ops, &code, err);

	ret->at_ns = cw_clock_now_ns(&cw_clock_system);
	if (r >= 0)
		r = cw_control_ask_status(control, &ret->status, &code, err);
	return r;
}

static bool is_same_row(const json_t *a, const json_t *b)
{
	static const char *const names[] = { "kind", "comm", "size", "job" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(cw_json_str(a, names[i], ""), cw_json_str(b, names[i], "")) != 0)
			return false;
	return cw_json_int(a, "uid", 0) == cw_json_int(b, "uid", 0);
}

/* Returns the row of the previous answer for the same calls; NULL = the row is new. */
static const json_t *find(const json_t *rows, const json_t *row)
{
	const json_t *before;
	size_t i;

	json_array_foreach (rows, i, before)
		if (is_same_row(before, row))
			return before;
	return NULL;
}

/*
 * Returns the growth of the row's total per second. A smaller total means that the daemon forgot a
 * process; we count no growth then.
 */
static json_t *rate(const json_t *row, const json_t *before, const char *name, double seconds)
{
	json_int_t grown = cw_json_int(row, name, 0) - cw_json_int(before, name, 0);

	return json_real(grown > 0 && seconds > 0 ? (double)grown / seconds : 0);
}

static int add_rates(struct sample *now, const struct sample *before)
{
	double seconds = (double)(now->at_ns - before->at_ns) / CW_NS_PER_S;
	const json_t *old = json_object_get(before->ops, "rows");
	json_t *row;
	size_t i;
	int bad = 0;

	json_array_foreach (json_object_get(now->ops, "rows"), i, row) {
		const json_t *was = find(old, row);

		bad |= json_object_set_new(row, "ops_per_s", rate(row, was, "ops", seconds));
		bad |= json_object_set_new(row, "bytes_per_s", rate(row, was, "bytes", seconds));
	}
	return bad;
}

/* Prints as many lines as fit the terminal. Without a terminal, prints all lines. */
static void put_screen(const char *text)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO)) {
		fputs(text, stdout);
		return;
	}
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < 2 || size.ws_col < 2)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	fputs("\033[H\033[J", stdout);
	for (unsigned line = 0; *text && line + 1 < size.ws_row; line++) {
		size_t n = strcspn(text, "\n"), shown = n < size.ws_col ? n : size.ws_col - 1u;

		while (shown < n && shown && ((unsigned char)text[shown] & 0xc0) == 0x80)
			shown--; /* never cut a character in half */
		printf("%.*s\n", (int)shown, text);
		text += n + (text[n] == '\n');
	}
}

static int show(const struct top_args *args, const struct sample *now)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out;

	if (args->ask.json) {
		cw_print_json(now->ops);
		return 0;
	}
	out = open_memstream(&text, &len);
	if (!out)
		return -1;
	cw_render_late(out, now->status);
	cw_render_ops(out, now->ops, false);
	if (fclose(out) == 0)
		put_screen(text);
	free(text);
	return 0;
}

int cw_verb_top(int argc, char **argv)
{
	struct sample before = { 0 }, now = { 0 };
	struct top_args args = { 0 };
	const char *control;
	struct cw_err err;
	int r;

	(void)cw_options_parse(&cw_argp_top, argc, argv, 0, &args);
	control = cw_control_path(args.ask.control);
	r = sample_take(control, &before, &err);
	while (r >= 0) {
		(void)sleep(EVERY_S);
		r = sample_take(control, &now, &err);
		if (r < 0)
			break;
		if (add_rates(&now, &before) < 0 || show(&args, &now) < 0 || fflush(stdout) != 0 ||
		    ferror(stdout)) {
			sample_fini(&before);
			sample_fini(&now);
			return CW_EXIT_ERROR;
		}
		sample_fini(&before);
		before = now;
		now = (struct sample){ 0 };
		if (args.once)
			break;
	}
	sample_fini(&before);
	sample_fini(&now);
	return r < 0 ? cw_ask_fail(r, &err) : CW_EXIT_OK;
}
