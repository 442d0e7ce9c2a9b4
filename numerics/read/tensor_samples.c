/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/read/tensor_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"

#define SITE_BYTES 256
/* Limit on the summaries of the whole job. */
#define SAMPLES_MAX (1u << 24)

/* The summaries of a record, grouped by op. */
struct source {
	struct cw_tensor_samples *l;
	struct cw_record *record;
	struct cw_rec_summary summaries[CW_REC_SUMMARIES];
	struct cw_numerics_sample samples[CW_REC_SUMMARIES];
	bool has_met[CW_REC_SUMMARIES]; /* we have found the op of this summary */
	size_t n;
};

static int grow(void **array, uint32_t *room, uint32_t wanted, size_t size)
{
	uint32_t more = *room ? *room : 64;
	void *grown;

	while (more < wanted)
		more *= 2;
	if (more == *room)
		return 0;
	grown = realloc(*array, (size_t)more * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = more;
	return 0;
}

/* ---- communicators, joined by id and instance ---- */

static int find_comm(struct cw_tensor_samples *l, const struct cw_numerics_comm *c, uint32_t *ret)
{
	uint32_t i = 0;
	int r;

	while (i < l->n_comms && (l->comms[i].id != c->id || l->comms[i].instance != c->instance))
		i++;
	*ret = i;
	if (i < l->n_comms) {
		l->comms[i].is_uncounted |= c->is_uncounted;
		return 0;
	}
	r = grow((void **)&l->comms, &l->room_comms, i + 1, sizeof(*l->comms));
	if (r < 0)
		return r;
	l->comms[i] = *c;
	l->comms[i].name = cw_arena_strdup(&l->texts, c->name ? c->name : "");
	l->n_comms++;
	return l->comms[i].name ? 0 : -ENOMEM;
}

static int find_recorded(struct cw_tensor_samples *l, const struct cw_rec_comm *e, uint32_t *ret)
{
	const struct cw_numerics_comm comm = {
		.id = e->comm_id,
		.instance = e->instance,
		.name = e->name,
		.nranks = e->nranks,
		.is_uncounted = e->flags & CW_REC_COMM_UNCOUNTED,
	};

	return find_comm(l, &comm, ret);
}

static const struct cw_rec_comm *comm_of(const struct cw_record *rec,
					 const struct cw_rec_summary *s)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++)
		if (comms[i].index == s->comm && comms[i].entry.generation == s->comm_generation)
			return &comms[i].entry;
	return NULL;
}

/* ---- one record ---- */

static int compare_summaries(const void *a, const void *b)
{
	const struct cw_rec_summary *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->comm_generation != y->comm_generation)
		return x->comm_generation < y->comm_generation ? -1 : 1;
	if (x->op_index != y->op_index)
		return x->op_index < y->op_index ? -1 : 1;
	return (x->publish > y->publish) - (x->publish < y->publish);
}

/*
 * Drops the copy of a summary that occurs twice. The first summary of a device is also in the ring
 * for a while.
 */
static void drop_doubles(struct source *f)
{
	size_t n = 0;

	qsort(f->summaries, f->n, sizeof(*f->summaries), compare_summaries);
	for (size_t i = 0; i < f->n; i++)
		if (n == 0 || f->summaries[n - 1].publish != f->summaries[i].publish)
			f->summaries[n++] = f->summaries[i];
	f->n = n;
}

static int64_t wall_of(const struct cw_record *rec, uint64_t at)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	int64_t since, wall;

	if (!at ||
	    __builtin_sub_overflow(cw_record_time(rec, at), cw_record_time(rec, h->created_ns),
				   &since) ||
	    h->created_wall_ns > INT64_MAX ||
	    __builtin_add_overflow((int64_t)h->created_wall_ns, since, &wall))
		return 0;
	return wall > 0 ? wall : 0;
}

/*
 * Returns the innermost frame of the call's stack or, without a stack, the code that made the call.
 */
static const char *site_of(struct source *f, const struct cw_rec_op *op)
{
	char stack[CW_RECORD_STACK_BYTES], site[SITE_BYTES];

	if (op->stack_id && cw_record_stack(f->record, op->stack_id, stack, sizeof(stack)) == 0) {
		stack[strcspn(stack, "\n")] = '\0';
		return cw_arena_strdup(&f->l->texts, stack);
	}
	if (cw_record_site(f->record, op, site, sizeof(site)) == 0)
		return cw_arena_strdup(&f->l->texts, site);
	return NULL;
}

static void on_op(const struct cw_rec_op *op, void *user)
{
	struct source *f = user;
	size_t low = 0, high = f->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct cw_rec_summary *s = &f->summaries[middle];

		if (s->comm < op->comm || (s->comm == op->comm && s->op_index < op->op_index))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < f->n && f->summaries[low].comm == op->comm &&
	       f->summaries[low].op_index == op->op_index;
	     low++) {
		const struct cw_rec_summary *s = &f->summaries[low];
		struct cw_numerics_sample *sample = &f->samples[low];

		/*
		 * has_met: we take one op per summary, because a hostile record may have any number
		 * of ops that match it.
		 */
		if (f->has_met[low] || (uint16_t)s->comm_generation != op->comm_generation ||
		    s->kind != op->kind || s->seq != op->seq)
			continue;
		f->has_met[low] = true;
		sample->redop = op->redop;
		sample->root_or_peer = op->root_or_peer;
		sample->at_ns = wall_of(f->record, op->enter_ns);
		sample->site = site_of(f, op);
	}
}

static uint32_t stride_of(const struct cw_rec_summary *s)
{
	unsigned log2_plus_1 = s->stride_log2_plus_1;

	return log2_plus_1 && log2_plus_1 <= 32 ? UINT32_C(1) << (log2_plus_1 - 1) : 0;
}

/* Converts the upper half of a single-precision number into a share. */
static float share_of(uint16_t bits)
{
	uint32_t whole = (uint32_t)bits << 16;
	float share;

	memcpy(&share, &whole, sizeof(share));
	return share >= 0 && share <= 1 ? share : 0;
}

static int make_sample(struct source *f, size_t i)
{
	const struct cw_rec_summary *s = &f->summaries[i];
	const struct cw_rec_comm *e = comm_of(f->record, s);
	uint32_t comm = CW_NUMERICS_NONE;
	int r = e ? find_recorded(f->l, e, &comm) : 0;

	f->samples[i] = (struct cw_numerics_sample){
		.rank = f->l->n_ranks,
		.comm = comm,
		.order = (uint32_t)s->publish,
		.root_or_peer = -1,
		.seq = s->seq,
		.step = s->step_plus_1 ? (int64_t)s->step_plus_1 - 1 : -1,
		.elements = s->elements,
		.offered = s->offered,
		.nans = s->nans,
		.infs = s->infs,
		.zeros = s->zeros,
		.abs_max = s->abs_max,
		.abs_min = s->abs_min_nonzero,
		.mean = s->mean,
		.l2 = s->l2,
		.checksum = s->checksum,
		.stride = stride_of(s),
		.at_limit = share_of(s->at_limit),
		.denormal = share_of(s->denormal),
		.kind = s->kind,
		.dtype = s->dtype,
		.redop = CW_REDOP_NONE,
		.is_output = s->is_output != 0,
	};
	return r;
}

/*
 * Returns the model of the devices of the record's communicators. "" = unknown, or several models.
 */
static const char *device_of(const struct source *f)
{
	const struct cw_rec_header *h = cw_record_header(f->record);
	const char *device = NULL;

	for (size_t i = 0; i < f->n; i++) {
		const struct cw_rec_comm *e = comm_of(f->record, &f->summaries[i]);
		const char *model = e ? cw_record_device_model(h, e->device) : "";

		if (e && device && strcmp(model, device) != 0)
			return "";
		device = e ? model : device;
	}
	return device ? device : "";
}

static int keep(struct source *f, uint64_t newest)
{
	const struct cw_rec_header *h = cw_record_header(f->record);
	struct cw_tensor_samples *l = f->l;
	const char *device = cw_arena_strdup(&l->texts, device_of(f));
	uint64_t oldest = newest;
	int r;

	if (!device)
		return -ENOMEM;
	r = grow((void **)&l->samples, &l->room_samples, l->n_samples + (uint32_t)f->n,
		 sizeof(*l->samples));
	if (r == 0)
		r = grow((void **)&l->ranks, &l->room_ranks, l->n_ranks + 1, sizeof(*l->ranks));
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->n; i++) {
		if (f->summaries[i].publish < oldest)
			oldest = f->summaries[i].publish;
		/*
		 * If the record has overwritten the communicator of a summary, we omit the summary.
		 */
		if (f->samples[i].comm != CW_NUMERICS_NONE)
			l->samples[l->n_samples++] = f->samples[i];
	}
	/*
	 * is_whole: the ring has lost no summary, because numbers begin with 1. Agents assign
	 * ticket numbers one by one, but skip a number if its slot was not free.
	 */
	l->ranks[l->n_ranks++] = (struct cw_numerics_rank){
		.rank = h->rank_label,
		.is_whole = oldest == 1 && newest <= f->n,
		.device = device,
		.cuda_driver = h->cuda_driver_version,
		.nccl = h->nccl_version,
	};
	return 0;
}

static int add(struct source *f, struct cw_tensor_samples_count *ret)
{
	uint64_t newest = 0;
	int r = 0;

	f->n = cw_record_summaries(f->record, f->summaries, CW_REC_SUMMARIES);
	drop_doubles(f);
	for (size_t i = 0; i < f->n && r == 0; i++) {
		r = make_sample(f, i);
		if (f->summaries[i].publish > newest)
			newest = f->summaries[i].publish;
	}
	if (r == 0)
		r = cw_record_each_kept(f->record, on_op, f);
	if (r == 0)
		r = keep(f, newest);
	if (r == 0)
		*ret = (struct cw_tensor_samples_count){ .newest = newest, .kept = f->n };
	return r;
}

int cw_tensor_samples_add(struct cw_tensor_samples *l, struct cw_record *record,
			  struct cw_tensor_samples_count *ret)
{
	struct source *f = calloc(1, sizeof(*f)); /* 50 KiB */
	int r;

	if (!f)
		return -ENOMEM;
	f->l = l;
	f->record = record;
	r = add(f, ret);
	free(f);
	return r;
}

/* ---- other nodes' summaries ---- */

static int join_rank(struct cw_tensor_samples *l, const struct cw_numerics_rank *rank)
{
	struct cw_numerics_rank *copy = &l->ranks[l->n_ranks];

	*copy = *rank;
	copy->device = cw_arena_strdup(&l->texts, rank->device ? rank->device : "");
	if (!copy->device)
		return -ENOMEM;
	l->n_ranks++;
	return 0;
}

/*
 * Adds the wanted ranks of `more`. places: for each rank of `more`, its index in l;
 * CW_NUMERICS_NONE = not wanted.
 */
static int join_ranks(struct cw_tensor_samples *l, const struct cw_numerics_job *more,
		      const bool *wanted, uint32_t *places)
{
	int r = grow((void **)&l->ranks, &l->room_ranks, l->n_ranks + more->n_ranks,
		     sizeof(*l->ranks));

	for (uint32_t i = 0; i < more->n_ranks && r == 0; i++) {
		places[i] = !wanted || wanted[i] ? l->n_ranks : CW_NUMERICS_NONE;
		if (places[i] != CW_NUMERICS_NONE)
			r = join_rank(l, &more->ranks[i]);
	}
	return r;
}

/*
 * Adds one summary of `more`. comms: for each communicator of `more`, its index in l plus 1; 0 =
 * not added yet.
 */
static int join_sample(struct cw_tensor_samples *l, const struct cw_numerics_job *more,
		       const struct cw_numerics_sample *sample, uint32_t *comms)
{
	struct cw_numerics_sample *copy = &l->samples[l->n_samples];
	uint32_t comm;
	int r;

	*copy = *sample;
	if (!comms[sample->comm]) {
		r = find_comm(l, &more->comms[sample->comm], &comm);
		if (r < 0)
			return r;
		comms[sample->comm] = comm + 1;
	}
	copy->comm = comms[sample->comm] - 1;
	copy->site = sample->site ? cw_arena_strdup(&l->texts, sample->site) : NULL;
	copy->carried = NULL;
	if (sample->site && !copy->site)
		return -ENOMEM;
	l->n_samples++;
	return 0;
}

static int join_samples(struct cw_tensor_samples *l, const struct cw_numerics_job *more,
			const uint32_t *places)
{
	uint32_t *comms = calloc((size_t)more->n_comms + 1, sizeof(*comms));
	int r = comms ? grow((void **)&l->samples, &l->room_samples, l->n_samples + more->n_samples,
			     sizeof(*l->samples))
		      : -ENOMEM;

	for (uint32_t i = 0; i < more->n_samples && r == 0; i++) {
		struct cw_numerics_sample sample = more->samples[i];

		if (places[sample.rank] == CW_NUMERICS_NONE)
			continue;
		sample.rank = places[sample.rank];
		r = join_sample(l, more, &sample, comms);
	}
	free(comms);
	return r;
}

int cw_tensor_samples_join(struct cw_tensor_samples *l, const struct cw_numerics_job *more,
			   const bool *wanted)
{
	uint32_t *places;
	int r;

	if (more->n_samples > SAMPLES_MAX - l->n_samples ||
	    more->n_ranks > SAMPLES_MAX - l->n_ranks)
		return -E2BIG;
	places = calloc((size_t)more->n_ranks + 1, sizeof(*places));
	r = places ? join_ranks(l, more, wanted, places) : -ENOMEM;
	if (r == 0)
		r = join_samples(l, more, places);
	free(places);
	return r;
}

struct cw_numerics_job cw_tensor_samples_job(const struct cw_tensor_samples *l)
{
	return (struct cw_numerics_job){
		.samples = l->samples,
		.n_samples = l->n_samples,
		.comms = l->comms,
		.n_comms = l->n_comms,
		.ranks = l->ranks,
		.n_ranks = l->n_ranks,
	};
}

void cw_tensor_samples_fini(struct cw_tensor_samples *l)
{
	free(l->samples);
	free(l->comms);
	free(l->ranks);
	cw_arena_fini(&l->texts);
	*l = (struct cw_tensor_samples){ .samples = NULL };
}
