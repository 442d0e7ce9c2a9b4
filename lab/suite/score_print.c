/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "lab/suite/score.h"

static const char *label(unsigned verdict_class)
{
	return verdict_class == CW_CLASS_HEALTHY ? "silence" : cw_class_name(verdict_class);
}

static void print_matrix(const struct score *score, FILE *out)
{
	(void)fprintf(out, "Expected (rows), given (columns):\n%18s", "");
	for (unsigned k = 0; k < SCORE_LABELS; k++)
		(void)fprintf(out, " %8.8s", label(k));
	(void)fputc('\n', out);
	for (unsigned i = 0; i < SCORE_LABELS; i++) {
		(void)fprintf(out, "%-18s", label(i));
		for (unsigned k = 0; k < SCORE_LABELS; k++)
			(void)fprintf(out, " %8" PRIu64, score->confusion[i][k]);
		(void)fputc('\n', out);
	}
}

static void print_share(uint64_t k, uint64_t n, FILE *out)
{
	double low, high;

	cw_score_interval(k, n, &low, &high);
	if (n)
		(void)fprintf(out, "  %.4f [%.4f, %.4f]", (double)k / (double)n, low, high);
	else
		(void)fprintf(out, "  %24s", "-");
}

static void print_times(struct score_times *t, FILE *out)
{
	if (t->n)
		(void)fprintf(out, "  %8.1f %8.1f %8.1f", (double)cw_score_times_at(t, 50) / 1e9,
			      (double)cw_score_times_at(t, 95) / 1e9,
			      (double)cw_score_times_at(t, 100) / 1e9);
	else
		(void)fprintf(out, "  %8s %8s %8s", "-", "-", "-");
}

static void print_classes(struct score *score, FILE *out)
{
	(void)fprintf(out, "\n%-18s %6s  %-24s  %-24s  %8s %8s %8s\n", "class", "n", "precision",
		      "recall", "s to page", "95 %", "longest");
	for (unsigned k = 1; k < SCORE_LABELS; k++) {
		struct score_class *c = &score->classes[k];

		if (!c->expected && !c->given)
			continue;
		(void)fprintf(out, "%-18s %6" PRIu64, cw_class_name(k), c->expected);
		print_share(c->given_rightly, c->given, out);
		print_share(c->right, c->expected, out);
		print_times(&c->pages, out);
		(void)fputc('\n', out);
	}
}

static void print_waits_of(const struct waits_count *counts, const char *what, FILE *out)
{
	for (unsigned i = 0; i < WAITS_LENGTHS; i++)
		if (counts[i].n)
			(void)fprintf(out,
				      "  %s, from %5.0f min: %6" PRIu64 " waits, %4" PRIu64
				      " with a false page, %6" PRIu64 " notices\n",
				      what, (double)cw_waits_length_ns(i) / 6e10, counts[i].n,
				      counts[i].n_paged, counts[i].notices);
}

static void print_waits(const struct score *score, FILE *out)
{
	struct waits_count all = cw_waits_total(&score->healthy_waits);

	(void)fprintf(out, "healthy waits longer than 60 s: %" PRIu64 ", false pages", all.n);
	if (!all.n) {
		(void)fprintf(out, ": %" PRIu64 "\n", score->n_false_alerts);
		return;
	}
	(void)fprintf(out, " for 1,000 of them: %.2f; more than one notice: %" PRIu64 "\n",
		      1000.0 * (double)score->n_false_alerts / (double)all.n, all.n_often_noticed);
	print_waits_of(score->healthy_waits.known, "time-out of an hour at most", out);
	print_waits_of(score->healthy_waits.longer, "longer time-out            ", out);
	print_waits_of(score->healthy_waits.none, "no time-out is known       ", out);
}

static void print_cluster(const struct score *score, FILE *out)
{
	bool has_any = false;

	for (unsigned k = 0; k < SCORE_CLUSTER__MAX; k++) {
		const struct score_cluster *c = &score->cluster[k];

		if (!c->n)
			continue;
		if (!has_any)
			(void)fprintf(out, "\n%-32s %6s  %6s  %s\n", "fault of the cluster", "n",
				      "missed", "alerts beyond those expected");
		has_any = true;
		(void)fprintf(out, "%-32s %6" PRIu64 "  %6" PRIu64 "  %" PRIu64 "\n",
			      cw_score_cluster_name(k), c->n, c->n_missed, c->n_false_alerts);
	}
}

/* Prints a share, as in "12 of 13  0.9231 [0.6669, 0.9863]". */
static void print_part(const char *what, uint64_t k, uint64_t n, FILE *out)
{
	(void)fprintf(out, "%s: %" PRIu64 " of %" PRIu64, what, k, n);
	print_share(k, n, out);
	(void)fputc('\n', out);
}

static void print_proofs(const struct score_proofs *p, FILE *out)
{
	print_part("mismatches, cycles and deaths with waiters, proven and paged within 5 s",
		   p->n_soon, p->n, out);
	print_part("of right answers there, called certain", p->n_certain, p->n_right, out);
	print_part("wrong data that no rank waited for yet, paged within 5 s", p->n_wrong_data_soon,
		   p->n_wrong_data, out);
}

void cw_score_print(struct score *score, FILE *out)
{
	print_matrix(score, out);
	print_classes(score, out);
	print_cluster(score, out);
	(void)fprintf(out, "\nexact culprits: %" PRIu64 " of %" PRIu64, score->n_exact_culprits,
		      score->n_culprits);
	print_share(score->n_exact_culprits, score->n_culprits, out);
	(void)fprintf(out, "\ncalled certain: %" PRIu64 ", wrong: %" PRIu64 "\n", score->n_certain,
		      score->n_certain_wrong);
	(void)fprintf(out, "called proven: %" PRIu64 ", wrong: %" PRIu64 "\n", score->n_proven,
		      score->n_proven_wrong);
	print_proofs(&score->proofs, out);
	if (score->n_usual_waits)
		(void)fprintf(out,
			      "hanging waits: %" PRIu64
			      ", of a kind and place drawn as healthy ones': %" PRIu64 "\n",
			      score->n_hanging_waits, score->n_usual_waits);
	(void)fprintf(out, "controls: %" PRIu64 ", alerts on them: %" PRIu64 "\n",
		      score->n_controls, score->n_control_alerts);
	(void)fprintf(out, "alerts beyond those expected: %" PRIu64 "\n", score->n_false_alerts);
	(void)fprintf(out, "second alerts of a hang: %" PRIu64 "\n", score->n_second);
	(void)fprintf(out, "pages after which the job went on: %" PRIu64 "\n", score->n_went_on);
	print_waits(score, out);
	(void)fprintf(out, "pages: %" PRIu64 ", notices: %" PRIu64 "\n", score->n_pages,
		      score->n_notices);
	if (score->n_postmortems)
		(void)fprintf(out, "post-mortems: %" PRIu64 ", right: %" PRIu64 "\n",
			      score->n_postmortems, score->n_right_postmortems);
	(void)fprintf(out, "scenarios: %" PRIu64 ", missed: %" PRIu64 "\n", score->n,
		      score->n_missed);
	for (size_t i = 0; i < score->n_misses; i++)
		(void)fprintf(out, "miss: %s: \"%s\": %s\n", score->misses[i].where,
			      score->misses[i].scenario, score->misses[i].reason);
	if (score->n_misses < score->n_missed)
		(void)fprintf(out, "… and %" PRIu64 " more\n", score->n_missed - score->n_misses);
}

/* ---- coverage ---- */

static bool is_covered_kind(unsigned kind)
{
	return cw_op_is_collective(kind) || cw_op_is_p2p(kind);
}

/* True if this class can happen to this kind of op. */
static bool is_valid_kind(unsigned verdict_class, unsigned kind)
{
	if (!is_covered_kind(kind))
		return verdict_class == CW_CLASS_INIT_STUCK &&
		       (kind == CW_OP_COMM_INIT || kind == CW_OP_COMM_SPLIT ||
			kind == CW_OP_COMM_FINALIZE);
	switch (verdict_class) {
	case CW_CLASS_INIT_STUCK:
		return false;
	case CW_CLASS_P2P_UNMATCHED:
		return cw_op_is_p2p(kind);
	case CW_CLASS_NEVER_ENTERED:
	case CW_CLASS_MISMATCH:
	case CW_CLASS_IN_COLLECTIVE:
	case CW_CLASS_SLOW:
	case CW_CLASS_UNKNOWN:
		return cw_op_is_collective(kind);
	default:
		return true;
	}
}

static bool is_valid_layout(unsigned verdict_class, unsigned layout)
{
	(void)verdict_class;
	return layout != SUITE_OTHER;
}

static uint32_t report(FILE *out, const char *a, const char *b)
{
	if (out)
		(void)fprintf(out, "uncovered: %s x %s\n", a, b);
	return 1;
}

static uint32_t walk(const struct score *score, FILE *out)
{
	uint32_t n = 0;

	for (unsigned c = 0; c < SCORE_LABELS; c++)
		for (unsigned k = 0; k < CW_OP__MAX; k++)
			if (is_valid_kind(c, k) && !score->class_kind[c][k])
				n += report(out, label(c), cw_op_kind_name(k));
	for (unsigned c = 0; c < SCORE_LABELS; c++)
		for (unsigned l = 0; l < SUITE_LAYOUT__MAX; l++)
			if (is_valid_layout(c, l) && !score->class_layout[c][l])
				n += report(out, label(c), suite_layout_name(l));
	for (unsigned k = 0; k < CW_OP__MAX; k++)
		for (unsigned l = 0; l < SUITE_LAYOUT__MAX; l++)
			if (is_covered_kind(k) && l != SUITE_OTHER && !score->kind_layout[k][l])
				n += report(out, cw_op_kind_name(k), suite_layout_name(l));
	return n;
}

uint32_t cw_score_n_uncovered(const struct score *score)
{
	return walk(score, NULL);
}

void cw_score_print_coverage(const struct score *score, FILE *out)
{
	uint32_t n = walk(score, out);
	uint64_t hangs, controls;

	cw_score_count_written(score, &hangs, &controls);
	(void)fprintf(out, "written: %" PRIu64 " hang%s, %" PRIu64 " control%s\n", hangs,
		      hangs == 1 ? "" : "s", controls, controls == 1 ? "" : "s");
	(void)fprintf(out,
		      "coverage: %u pairs of class x op, class x layout, op x layout missing\n", n);
}
