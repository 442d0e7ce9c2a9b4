/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/earlier_doc.h"

#include <errno.h>
#include <stdbool.h>

#include "common/clock.h"
#include "report/doc/said_doc.h"
#include "say/english.h"

/*
 * A thread that used less of the time between two readings is idle. A blocked thread wakes up now
 * and then, for example to check for signals.
 */
#define IDLE_PART 100

static struct cw_arg duration(int64_t ns)
{
	return (struct cw_arg){ .kind = CW_ARG_DURATION, .duration = { .ns = ns } };
}

static struct cw_arg text(const char *text)
{
	return (struct cw_arg){ .kind = CW_ARG_TEXT, .text = text };
}

static int64_t cpu_between(const struct cw_stack_reading *a, const struct cw_stack_reading *b)
{
	return a->run_ns > 0 && b->run_ns > a->run_ns ? b->run_ns - a->run_ns : 0;
}

/* Copies the readings that have a stack. Returns -ENOMEM, or the number of copies. */
static int copy_readings(const struct cw_stack_readings *from, struct cw_arena *arena,
			 struct cw_stack_reading **ret)
{
	int n = 0;

	*ret = cw_arena_new_array(arena, struct cw_stack_reading, from->n + 1u);
	if (!*ret)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n; i++)
		if (*from->list[i].place)
			(*ret)[n++] = from->list[i];
	return n;
}

static void say_change(struct cw_clause *clause, struct cw_arg who,
		       const struct cw_stack_reading *list, uint32_t n, bool is_changed)
{
	int64_t cpu_ns = cpu_between(&list[0], &list[n - 1]);

	if (is_changed) {
		cw_say(clause, moved_on, who);
		for (uint32_t i = 0; i < n; i++)
			if (i == 0)
				cw_say(clause, was_in_at, duration(list[i].waited_ns),
				       text(list[i].place));
			else
				cw_say(clause, then_in_at, duration(list[i].waited_ns),
				       text(list[i].place));
	} else {
		cw_say(clause, stayed_in, who, text(list[0].place), duration(list[0].waited_ns),
		       duration(list[n - 1].waited_ns));
	}
	if (cpu_ns > (list[n - 1].waited_ns - list[0].waited_ns) / IDLE_PART)
		cw_say(clause, with_cpu, duration(cpu_ns));
	else if (!is_changed && list[0].run_ns > 0 && list[n - 1].run_ns >= list[0].run_ns)
		cw_say(clause, without_cpu);
	cw_say(clause, end);
}

int cw_earlier_doc_add(const struct cw_stack_readings *readings, struct cw_arena *arena,
		       struct cw_incident_facts *incident)
{
	struct cw_incident_earlier_stack *to =
		&incident->earlier_stacks[incident->n_earlier_stacks];
	int32_t *label = cw_arena_memdup(arena, &readings->rank, 1, sizeof(readings->rank));
	struct cw_arg who = { .kind = CW_ARG_RANKS, .ranks = { .labels = label, .n = 1 } };
	struct cw_clause clause = { .arena = arena };
	char sentence[CW_SAID_TEXT_MAX];
	struct cw_stack_reading *list;
	int n = copy_readings(readings, arena, &list);

	if (n < 2)
		return n < 0 ? n : 0;
	*to = (struct cw_incident_earlier_stack){
		.rank = readings->rank,
		.host = cw_arena_strdup(arena, readings->host),
		.pid = readings->pid,
		.readings = cw_arena_new_array(arena, struct cw_incident_stack_reading, (size_t)n),
		.n_readings = (uint32_t)n,
	};
	if (!label || !to->host || !to->readings)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		int64_t cpu_ns = i ? cpu_between(&list[i - 1], &list[i]) : 0;

		to->is_changed |= i && list[i].lines != list[i - 1].lines;
		to->readings[i] = (struct cw_incident_stack_reading){
			.waited_s = (double)list[i].waited_ns / CW_NS_PER_S,
			.place = list[i].place,
			.cpu_s = (double)cpu_ns / CW_NS_PER_S,
		};
	}
	say_change(&clause, who, list, (uint32_t)n, to->is_changed);
	to->text.said = clause;
	to->text.text = cw_arena_strdup(arena, cw_say_text(&clause, sentence, sizeof(sentence)));
	if (clause.is_incomplete || !to->text.text)
		return -ENOMEM;
	incident->n_earlier_stacks++;
	return 0;
}
