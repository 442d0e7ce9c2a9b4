/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and refreshes a record while its writer, which may be hostile, changes it. We therefore
 * read with one pread into our own memory, and check that copy. We never read the same bytes twice
 * for two purposes.
 *
 * We check sizes and the section table once, at opening. If a record changes them afterwards, we
 * refuse the record from then on.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "record/record_internal.h"

#define SEALS_NEEDED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define MAX_BYTES (2ull * CW_RECORD_MAX_BYTES)
/* If the writer still changes an entry after this many tries, we give up on the entry. */
#define SEQLOCK_TRIES 4
#define CHUNK_BYTES 16384u

/*
 * For each table: the entry size that we know, and the largest number of entries. Any program may
 * write a record, and each read takes the whole table, so we need a limit. Some tables cost time at
 * each read. Their limit is twice what this version's agents write. The limit of the other tables
 * is four times as much. These tables have grown by such factors from one version to the next.
 */
static const struct {
	uint32_t entry_bytes, most;
} known[] = {
	[CW_REC_SECTION_COMMS] = { sizeof(struct cw_rec_comm), 2 * CW_REC_COMMS },
	[CW_REC_SECTION_RING] = { sizeof(struct cw_rec_op), 2 * CW_REC_RING_OPS },
	[CW_REC_SECTION_P2P] = { sizeof(struct cw_rec_p2p_block), 4 * CW_REC_P2P_BLOCKS },
	[CW_REC_SECTION_PROGRESS_INFO] = { sizeof(struct cw_rec_progress_info),
					   4 * CW_REC_PROGRESS_SLOTS },
	[CW_REC_SECTION_PROGRESS] = { sizeof(struct cw_rec_progress), 4 * CW_REC_PROGRESS_SLOTS },
	[CW_REC_SECTION_MODULES] = { sizeof(struct cw_rec_module), 4 * CW_REC_MODULES },
	[CW_REC_SECTION_STACKS] = { sizeof(struct cw_rec_stack), 4 * CW_REC_STACKS },
	[CW_REC_SECTION_REPLAYS] = { sizeof(struct cw_rec_replay), 4 * CW_REC_REPLAYS },
	[CW_REC_SECTION_SUMMARIES] = { sizeof(struct cw_rec_summary), 4 * CW_REC_SUMMARIES },
	[CW_REC_SECTION_TIMES] = { sizeof(struct cw_rec_time), 4 * CW_REC_TIMES },
	[CW_REC_SECTION_TEMPLATES] = { sizeof(struct cw_rec_template), 4 * CW_REC_TEMPLATES },
	[CW_REC_SECTION_FRAMES] = { sizeof(struct cw_rec_frame), 4 * CW_REC_FRAMES },
	[CW_REC_SECTION_CONNECTIONS] = { sizeof(struct cw_rec_connection), 2 * CW_REC_CONNECTIONS },
	[CW_REC_SECTION_VARIABLES] = { sizeof(struct cw_rec_variables), 1 },
};
#define N_KNOWN (sizeof(known) / sizeof(known[0]))

int cw_record_pread(const struct cw_record *rec, void *buf, size_t len, uint64_t offset)
{
	char *to = buf;

	if (rec->memory) {
		if (offset > rec->memory_bytes || len > rec->memory_bytes - offset)
			return -EIO;
		memcpy(buf, (const char *)rec->memory + offset, len);
		return 0;
	}
	while (len) {
		ssize_t n = pread(rec->fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* the file is shorter than its header claims */
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int cw_record_read_table(const struct cw_record *rec, const struct cw_record_section *s,
			 uint32_t first, uint32_t n, size_t size, void *ret)
{
	char chunk[CHUNK_BYTES], *to = ret;
	uint32_t at_once = CHUNK_BYTES / s->entry_bytes, here;
	int r = 0;

	if (s->entry_bytes == size)
		return cw_record_pread(rec, ret, (size_t)n * size,
				       s->offset + (uint64_t)first * s->entry_bytes);
	for (; n && r == 0; n -= here, first += here) {
		uint64_t offset = s->offset + (uint64_t)first * s->entry_bytes;

		here = n < at_once ? n : at_once;
		if (!here) { /* entries exceed a chunk: read the first bytes of each entry */
			here = 1;
			r = cw_record_pread(rec, to, size, offset);
		} else {
			r = cw_record_pread(rec, chunk, (size_t)here * s->entry_bytes, offset);
		}
		for (uint32_t i = 0; r == 0 && at_once && i < here; i++)
			memcpy(to + (size_t)i * size, chunk + (size_t)i * s->entry_bytes, size);
		to += (size_t)here * size;
	}
	return r;
}

int64_t cw_record_time(const struct cw_record *rec, uint64_t t)
{
	const struct cw_rec_header *h = &rec->header;
	unsigned __int128 ns;

	if (h->clock != CW_REC_CLOCK_TSC || t == 0 || t < h->tsc_base || h->tsc_shift > 63)
		return t > INT64_MAX ? INT64_MAX : (int64_t)t;
	ns = h->tsc_base_ns + ((unsigned __int128)(t - h->tsc_base) * h->tsc_mult >> h->tsc_shift);
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

/*
 * Requires FUTURE_WRITE and the size seals. With these seals only the process that mapped the memfd
 * first can write to it. No pread can fail because of a truncated file. We accept only tmpfs,
 * because a hugetlb memfd looks like a memfd, too.
 */
static int check_seals(int fd, struct cw_err *err)
{
	struct statfs fs;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return cw_err_set(err, EPERM, "not a memfd of tmpfs");
	if ((seals & SEALS_NEEDED) != SEALS_NEEDED)
		return cw_err_set(err, EPERM, "seals are missing (has 0x%x, needs 0x%x)",
				  (unsigned)seals, (unsigned)SEALS_NEEDED);
	return 0;
}

static bool is_readable(const struct cw_rec_header *h)
{
	if (h->version > CW_RECORD_VERSION)
		return h->readable_from && h->readable_from <= CW_RECORD_VERSION;
	return h->version >= CW_RECORD_VERSION_MIN;
}

static int check_header(const struct cw_rec_header *h, uint64_t file_bytes, struct cw_err *err)
{
	if (h->magic != CW_RECORD_MAGIC)
		return cw_err_set(
			err, EBADMSG,
			"not a flight record, or one of a machine with another byte order");
	if (!is_readable(h))
		return cw_err_set(err, ENOTSUP,
				  "its version is %u, this program reads %u to %u: both must be of "
				  "neighbouring releases of collwatch",
				  h->version, CW_RECORD_VERSION_MIN, CW_RECORD_VERSION);
	if (h->state == 0)
		return cw_err_set(err, EBADMSG, "not set up yet");
	if (h->total_bytes > file_bytes || h->header_bytes < sizeof(*h) ||
	    h->header_bytes > h->total_bytes)
		return cw_err_set(err, EBADMSG, "sizes in its header do not fit the file");
	return 0;
}

static bool overlaps(const struct cw_rec_section *a, const struct cw_rec_section *b)
{
	uint64_t a_end = a->offset + (uint64_t)a->entry_bytes * a->count;
	uint64_t b_end = b->offset + (uint64_t)b->entry_bytes * b->count;

	return a->offset < b_end && b->offset < a_end;
}

/*
 * The product of two 32-bit numbers fits in 64 bits. We subtract instead of adding, because a sum
 * of hostile numbers could overflow.
 */
static bool lies_inside(const struct cw_rec_section *s, const struct cw_rec_header *h)
{
	uint64_t bytes = (uint64_t)s->entry_bytes * s->count;

	return s->offset % 64 == 0 && s->offset >= h->header_bytes && bytes <= h->total_bytes &&
	       s->offset <= h->total_bytes - bytes;
}

static int read_sections(struct cw_record *rec, struct cw_err *err)
{
	const struct cw_rec_section *table = rec->header.sections;

	for (unsigned i = 0; i < CW_REC_SECTION__MAX; i++) {
		const struct cw_rec_section *s = &table[i];

		if (s->type == 0)
			continue;
		if (!lies_inside(s, &rec->header))
			return cw_err_set(err, EBADMSG, "section %u lies outside the record", i);
		for (unsigned j = 0; j < i; j++) {
			if (table[j].type == 0)
				continue;
			if (table[j].type == s->type || overlaps(s, &table[j]))
				return cw_err_set(err, EBADMSG, "sections %u and %u collide", j, i);
		}
		/* Ignore a section of an unknown type, or with entries smaller than our struct. */
		if (s->type >= N_KNOWN || s->entry_bytes < known[s->type].entry_bytes)
			continue;
		if (s->count > known[s->type].most)
			return cw_err_set(err, EBADMSG,
					  "section %u: count of entries %u, at most %u", i,
					  s->count, known[s->type].most);
		rec->sections[s->type] = (struct cw_record_section){
			.offset = s->offset,
			.entry_bytes = s->entry_bytes,
			.count = s->count,
		};
	}
	return 0;
}

static int check_file(struct cw_record *rec, bool require_seals, uint64_t *ret_bytes,
		      struct cw_err *err)
{
	struct stat st;
	int r;

	if (fstat(rec->fd, &st) < 0)
		return cw_err_set(err, errno, "cannot stat it: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return cw_err_set(err, EPERM, "not a regular file");
	if (require_seals) {
		r = check_seals(rec->fd, err);
		if (r < 0)
			return r;
	}
	*ret_bytes = (uint64_t)st.st_size;
	return 0;
}

static int check_contents(struct cw_record *rec, uint64_t bytes, struct cw_err *err)
{
	int r;

	if (bytes > MAX_BYTES)
		return cw_err_set(err, EFBIG, "%llu bytes are more than a record has",
				  (unsigned long long)bytes);
	if (bytes < sizeof(rec->header))
		return cw_err_set(err, EBADMSG, "not a flight record: too short");
	r = cw_record_pread(rec, &rec->header, sizeof(rec->header), 0);
	if (r < 0)
		return cw_err_set(err, -r, "cannot read it: %s", strerror(-r));
	r = check_header(&rec->header, bytes, err);
	if (r < 0)
		return r;
	r = read_sections(rec, err);
	if (r < 0)
		return r;
	r = cw_record_refresh(rec);
	return r < 0 ? cw_err_set(err, -r, "its contents are inconsistent") : 0;
}

int cw_record_open(int fd, bool require_seals, struct cw_record **ret, struct cw_err *err)
{
	struct cw_record *rec = calloc(1, sizeof(*rec));
	uint64_t bytes = 0;
	int r;

	if (!rec) {
		(void)close(fd);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	rec->fd = fd;
	r = check_file(rec, require_seals, &bytes, err);
	if (r == 0)
		r = check_contents(rec, bytes, err);
	if (r < 0) {
		cw_record_close(rec);
		return r;
	}
	*ret = rec;
	return 0;
}

int cw_record_open_memory(const void *memory, size_t bytes, struct cw_record **ret,
			  struct cw_err *err)
{
	struct cw_record *rec = calloc(1, sizeof(*rec));
	int r;

	if (!rec)
		return cw_err_set(err, ENOMEM, "out of memory");
	rec->fd = -1;
	rec->memory = memory;
	rec->memory_bytes = bytes;
	r = check_contents(rec, bytes, err);
	if (r < 0) {
		cw_record_close(rec);
		return r;
	}
	*ret = rec;
	return 0;
}

struct cw_record *cw_record_close(struct cw_record *rec)
{
	if (!rec)
		return NULL;
	closep(&rec->fd);
	free(rec->identities);
	free(rec->comms);
	free(rec->slots);
	free(rec->replays);
	free(rec->templates);
	free(rec->bulk);
	free(rec->bulk_last_plus_1);
	free(rec);
	return NULL;
}

int cw_record_fd(const struct cw_record *rec)
{
	return rec->fd;
}

size_t cw_record_memory(const struct cw_record *rec)
{
	size_t bytes = sizeof(*rec) + rec->n_identities * CW_RECORD_IDENTITY_BYTES +
		       rec->n_comms_allocated * sizeof(*rec->comms) +
		       rec->n_slots * sizeof(*rec->slots) + rec->n_replays * sizeof(*rec->replays);

	if (rec->templates)
		bytes += rec->templates->count * sizeof(rec->templates->runs[0]);

	if (rec->bulk)
		bytes += rec->sections[CW_REC_SECTION_RING].count * sizeof(*rec->bulk) +
			 rec->sections[CW_REC_SECTION_COMMS].count * sizeof(*rec->bulk_last_plus_1);
	return bytes;
}

const struct cw_rec_header *cw_record_header(const struct cw_record *rec)
{
	return &rec->header;
}

const struct cw_record_comm *cw_record_comms(const struct cw_record *rec, size_t *ret_n)
{
	*ret_n = rec->n_comms;
	return rec->comms;
}

void cw_record_make_line(char *text, size_t size)
{
	text[size - 1] = '\0';
	cw_text_sanitise_line(text);
}

static int read_header(const struct cw_record *rec, struct cw_rec_header *h)
{
	const struct cw_rec_header *old = &rec->header;
	int r;

	r = cw_record_pread(rec, h, sizeof(*h), 0);
	if (r < 0)
		return r;
	if (h->magic != old->magic || h->version != old->version || h->state == 0 ||
	    h->header_bytes != old->header_bytes || h->total_bytes != old->total_bytes ||
	    memcmp(h->sections, old->sections, sizeof(h->sections)) != 0 ||
	    h->comms_used > rec->sections[CW_REC_SECTION_COMMS].count)
		return -EBADMSG;
	cw_record_make_line(h->job_label, sizeof(h->job_label));
	cw_record_make_line(h->rank_label_source, sizeof(h->rank_label_source));
	cw_record_make_line(h->master, sizeof(h->master));
	cw_record_make_line(h->job_policy, sizeof(h->job_policy));
	for (unsigned i = 0; i < CW_REC_DEVICES; i++)
		cw_record_make_line(h->device_models[i], sizeof(h->device_models[i]));
	return 0;
}

/*
 * The seqlock must be even, and the same before and after the copy. A pread copies in no promised
 * order, so the number inside the copy proves nothing. The number before the copy comes from an
 * earlier read. We first try the number of the last refresh, which saves one of three preads if
 * nothing has changed since. We read the number after the copy separately.
 */
static int read_identity(const struct cw_record *rec, uint32_t index, unsigned char *kept)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_COMMS];
	uint64_t offset = s->offset + (uint64_t)index * s->entry_bytes;
	unsigned char copy[CW_RECORD_IDENTITY_BYTES];
	uint64_t before, after;
	int r;

	memcpy(&before, kept, sizeof(before));
	for (int i = 0; i < SEQLOCK_TRIES; i++) {
		r = cw_record_pread(rec, copy, sizeof(copy), offset);
		if (r == 0 && memcmp(copy, kept, sizeof(copy)) == 0)
			return 0; /* nothing has changed */
		if (r == 0)
			r = cw_record_pread(rec, &after, sizeof(after), offset);
		if (r < 0)
			return r;
		if (before == after && !(after & 1)) {
			memcpy(kept, copy, sizeof(copy));
			memcpy(kept, &after, sizeof(after));
			return 0;
		}
		before = after;
	}
	return 0; /* the writer is not finished, or has died: keep the last stable copy */
}

static int read_identities(struct cw_record *rec, uint32_t used)
{
	if (used > rec->n_identities) {
		unsigned char *v = realloc(rec->identities, used * CW_RECORD_IDENTITY_BYTES);

		if (!v)
			return -ENOMEM;
		memset(v + rec->n_identities * CW_RECORD_IDENTITY_BYTES, 0,
		       (used - rec->n_identities) * CW_RECORD_IDENTITY_BYTES);
		rec->identities = v;
		rec->n_identities = used;
	}
	for (uint32_t i = 0; i < used; i++) {
		int r = read_identity(rec, i, rec->identities + i * CW_RECORD_IDENTITY_BYTES);

		if (r < 0)
			return r;
	}
	return 0;
}

static void check_comm(struct cw_rec_comm *c)
{
	if (c->comm_rank < 0 || (uint32_t)c->comm_rank >= c->nranks)
		c->comm_rank = -1;
	cw_record_make_line(c->name, sizeof(c->name));
	cw_record_make_line(c->last_error, sizeof(c->last_error));
}

static int collect_comms(struct cw_record *rec, uint32_t used)
{
	size_t n = 0;

	if (used > rec->n_comms_allocated) {
		struct cw_record_comm *v = realloc(rec->comms, used * sizeof(*v));

		if (!v)
			return -ENOMEM;
		rec->comms = v;
		rec->n_comms_allocated = used;
	}
	for (uint32_t i = 0; i < used; i++) {
		struct cw_record_comm *to = &rec->comms[n];

		memcpy(&to->entry, rec->identities + i * CW_RECORD_IDENTITY_BYTES,
		       CW_RECORD_IDENTITY_BYTES);
		if (to->entry.state == CW_COMM_FREE || to->entry.state >= CW_COMM__MAX)
			continue;
		to->index = i;
		check_comm(&to->entry);
		n++;
	}
	rec->n_comms = n;
	return 0;
}

static uint64_t full_value(uint64_t base, uint32_t word)
{
	return base + (uint32_t)(word - (uint32_t)base);
}

static void join_slots(struct cw_record *rec, uint32_t first, uint32_t n, const char *info,
		       uint32_t info_stride, const char *words, uint32_t words_stride,
		       bool only_graphs)
{
	for (uint32_t i = 0; i < n; i++) {
		struct cw_rec_progress_info in;
		struct cw_rec_progress word;
		struct cw_record_slot *slot = &rec->slots[first + i];

		memcpy(&in, info + (size_t)i * info_stride, sizeof(in));
		if (!in.comm_plus_1 && !slot->comm_plus_1)
			continue; /* nearly all slots take this path */
		memcpy(&word, words + (size_t)i * words_stride, sizeof(word));
		if (only_graphs && !(in.comm_plus_1 & CW_REC_SLOT_OF_GRAPH))
			continue;
		*slot = (struct cw_record_slot){
			.comm_plus_1 = in.comm_plus_1,
			.comm_generation = in.comm_generation,
			.base = in.base,
			.reached = full_value(in.base, word.reached),
			.completed = full_value(in.base, word.completed),
		};
		/*
		 * The stream writes `reached` before `completed`. If we read between the two
		 * writes, or out of order, the later value wins.
		 */
		if (slot->reached < slot->completed)
			slot->reached = slot->completed;
	}
}

/*
 * Reads the progress words. With only_graphs it updates only the slots of CUDA graphs, else all
 * slots.
 */
static int read_progress(struct cw_record *rec, uint32_t has, bool only_graphs)
{
	const struct cw_record_section *is = &rec->sections[CW_REC_SECTION_PROGRESS_INFO];
	const struct cw_record_section *ws = &rec->sections[CW_REC_SECTION_PROGRESS];
	uint32_t count = is->count < ws->count ? is->count : ws->count;
	uint32_t stride = is->entry_bytes > ws->entry_bytes ? is->entry_bytes : ws->entry_bytes;
	char info[CHUNK_BYTES], words[CHUNK_BYTES];
	int r;

	if (!(has & CW_REC_HAS_PROGRESS) || count == 0 || stride > CHUNK_BYTES) {
		rec->n_slots = 0;
		return 0;
	}
	if (!rec->slots)
		rec->slots = calloc(count, sizeof(*rec->slots));
	if (!rec->slots)
		return -ENOMEM;
	rec->n_slots = count;
	for (uint32_t first = 0, n; first < count; first += n) {
		n = CHUNK_BYTES / stride;
		if (n > count - first)
			n = count - first;
		r = cw_record_pread(rec, info, (size_t)n * is->entry_bytes,
				    is->offset + (uint64_t)first * is->entry_bytes);
		if (r == 0)
			r = cw_record_pread(rec, words, (size_t)n * ws->entry_bytes,
					    ws->offset + (uint64_t)first * ws->entry_bytes);
		if (r < 0)
			return r;
		join_slots(rec, first, n, info, is->entry_bytes, words, ws->entry_bytes,
			   only_graphs);
	}
	return 0;
}

int cw_record_refresh(struct cw_record *rec)
{
	struct cw_rec_header h;
	int r;

	r = read_header(rec, &h);
	if (r < 0)
		return r;
	/*
	 * Read words before counters. The host counts an op before the device can reach it, so a
	 * word never exceeds its counter.
	 */
	r = read_progress(rec, h.has, false);
	if (r == 0)
		r = cw_record_read_replays(rec, h.has);
	/*
	 * Read a graph's words after the words of its launches. Read earlier, they might belong to
	 * a replay that has finished.
	 */
	if (r == 0 && rec->n_replays)
		r = read_progress(rec, h.has, true);
	if (r == 0)
		r = read_identities(rec, h.comms_used);
	if (r == 0)
		r = collect_comms(rec, h.comms_used);
	if (r < 0)
		return r;
	rec->header = h;
	rec->rereads_left = CW_RECORD_REREADS;
	return 0;
}
