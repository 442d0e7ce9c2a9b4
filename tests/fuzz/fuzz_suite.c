/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as scenarios: each that is accepted is within its limits, the rest has a sentence. */
#include "tests/fuzz/fuzz.h"

#include "lab/suite/scenario/scenario.h"

#define MAX_LINES 20000u

static void check_set(const struct suite_set *set)
{
	FUZZ_CHECK(set->n <= SUITE_MAX_RANGES);
	FUZZ_CHECK(set->step == 0 || set->phase < set->step);
	(void)cw_suite_set_has(set, 0);
}

static void check_program(const struct suite_scenario *s, const struct suite_program *p)
{
	check_set(&p->set);
	FUZZ_CHECK(p->n_insns <= SUITE_MAX_INSNS);
	for (uint32_t i = 0; i < p->n_insns; i++) {
		const struct suite_insn *insn = &p->insns[i];

		if (insn->kind == SUITE_CALL)
			FUZZ_CHECK(insn->call.family < s->n_families);
		if (insn->kind == SUITE_END)
			FUZZ_CHECK(insn->other < i && p->insns[insn->other].other == i);
	}
}

/* Nothing but collectives, groups of them and kernels is in a graph, all on its stream. */
static void check_graphs(const struct suite_program *p)
{
	const struct suite_insn *graph = NULL;

	for (uint32_t i = 0; i < p->n_insns; i++) {
		const struct suite_insn *insn = &p->insns[i];
		bool is_end = insn->kind == SUITE_END;

		if (graph && is_end && &p->insns[insn->other] == graph)
			graph = NULL;
		else if (graph && insn->kind == SUITE_CALL)
			FUZZ_CHECK(cw_op_is_collective(insn->call.kind) &&
				   insn->call.stream == graph->n);
		else if (graph)
			FUZZ_CHECK(is_end || insn->kind == SUITE_GROUP ||
				   insn->kind == SUITE_COMPUTE);
		else if (insn->kind == SUITE_GRAPH)
			graph = insn;
	}
}

static void check_trait(const struct suite_scenario *s, const struct suite_trait *t)
{
	check_set(&t->set);
	if (t->kind == SUITE_VERSION)
		FUZZ_CHECK(t->value <= 9999999);
	if (t->kind == SUITE_SIZE)
		FUZZ_CHECK(t->family < s->n_families && t->value > 0);
}

/* Answers on the same incident stand together, and incidents are numbered without gaps. */
static void check_answers(const struct suite_scenario *s)
{
	for (uint32_t i = 0; i < s->n_answers; i++) {
		uint32_t before = i ? s->answers[i - 1].incident : 0;

		check_set(&s->answers[i].culprits);
		FUZZ_CHECK(s->answers[i].incident == before ||
			   (i && s->answers[i].incident == before + 1));
	}
	FUZZ_CHECK(!s->is_alone || suite_n_incidents(s) == 1);
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	FUZZ_CHECK(s->n_ranks >= 2 && s->n_ranks <= SUITE_MAX_RANKS && s->per_node > 0);
	FUZZ_CHECK(s->n_families <= SUITE_MAX_FAMILIES && s->n_faults <= SUITE_MAX_FAULTS);
	FUZZ_CHECK(s->n_answers <= SUITE_MAX_ANSWERS && s->n_programs <= SUITE_MAX_PROGRAMS);
	FUZZ_CHECK(s->n_traits <= SUITE_MAX_TRAITS);
	for (uint32_t i = 0; i < s->n_programs; i++) {
		check_program(s, &s->programs[i]);
		check_graphs(&s->programs[i]);
	}
	for (uint32_t i = 0; i < s->n_traits; i++)
		check_trait(s, &s->traits[i]);
	check_answers(s);
	for (uint32_t i = 0; i < s->n_faults; i++)
		check_set(&s->faults[i].set);
	(*(unsigned *)user)++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cw_err err = { "" };
	unsigned n = 0;

	if (cw_suite_read_text((const char *)data, size, "fuzz", MAX_LINES, on_scenario, &n, &err) <
	    0)
		FUZZ_CHECK(err.text[0] != '\0');
	return 0;
}
