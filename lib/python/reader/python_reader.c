/* SPDX-License-Identifier: Apache-2.0 */
#include "python/reader/python_reader.h"

#include <string.h>

#include "python/python_code.h"

/* Limit of all reads of one process. At about 1 us each they take a fraction of a second. */
#define MAX_READS 200000u
/* Limit of the interpreters of one process. A program rarely has a second one (PEP 734). */
#define MAX_INTERPRETERS 16u
/*
 * CHAIN_ATTEMPTS limits the reads of the chain of a thread that may run. EQUAL_READS equal reads in
 * a row prove that a chain is right. In a tight loop of the program a read may mix two stacks. At
 * most one of four reads repeats the mixture of the read before. Eight equal mixtures in a row
 * therefore happen once in 65,000 cases.
 */
#define CHAIN_ATTEMPTS 64u
#define EQUAL_READS 8u
/* Attempts to walk the list of threads while threads begin and end. */
#define LIST_ATTEMPTS 8u
/*
 * Limit of the frames that we follow in a chain. Frames without Python code stand between the
 * others, at most one per call from C.
 */
#define MAX_STEPS (3 * CW_PYTHON_READ_FRAMES)
/*
 * Bytes that one read of the frame stack fetches. Frames of Python functions that call each other
 * lie side by side, so one read often fetches several frames.
 */
#define VIEW_BYTES 1024u
/* The largest offset of a field that we read in an object, plus the size of that field. */
#define HEAD_BYTES 264u
/* The longest piece of a text that we copy, in characters. */
#define TEXT_PIECE 256u
/*
 * Offset of the thread's kernel number in the C library's struct behind a pthread_t. glibc has kept
 * these offsets since 2.17. We accept the number only if the kernel lists a thread with this
 * number.
 */
#if defined(__x86_64__)
#define PTHREAD_TID 720u
#elif defined(__aarch64__)
#define PTHREAD_TID 208u
#endif

struct link {
	uint64_t frame, code, instr;
	bool is_entry;
};

struct chain {
	unsigned n;
	bool is_cut;
	struct link links[CW_PYTHON_READ_FRAMES];
};

#define PAGE 4096u
/*
 * Size of the cache of memory pages. Names and tables of lines of one process rarely lie in more
 * pages.
 */
#define CACHED_PAGES 32u

struct page {
	uint64_t number; /* 0 = unused; the process never maps page 0 */
	uint8_t bytes[PAGE];
};

struct reader {
	const struct cw_python_read_config *config;
	const struct cw_python_layout *layout;
	struct cw_python_memory counted; /* reads memory, counts the reads and limits them */
	/*
	 * Reads names and tables of lines through the cache, because they do not change and many
	 * frames share them. A read of a page costs as much as a read of a word.
	 */
	struct cw_python_memory cached;
	struct page pages[CACHED_PAGES];
	struct cw_python_read_summary summary;
	/* The threads of the interpreter that we read. */
	uint64_t threads[CW_PYTHON_READ_THREADS];
	unsigned n_threads;
	uint64_t odd_thread; /* thread at which the last walk of the list failed */
	uint32_t random;
	struct chain chains[2];
	struct cw_python_frame frames[CW_PYTHON_READ_FRAMES];
};

static bool read_counted(void *user, uint64_t from, void *to, size_t len)
{
	struct reader *r = user;

	if (r->summary.n_reads == MAX_READS || from + len < from)
		return false;
	r->summary.n_reads++;
	return cw_python_read(r->config->memory, from, to, len);
}

static bool read_cached(void *user, uint64_t from, void *to, size_t len)
{
	struct reader *r = user;

	while (len) {
		size_t at = from % PAGE, n = PAGE - at < len ? PAGE - at : len;
		struct page *page = &r->pages[from / PAGE % CACHED_PAGES];

		if (page->number != from / PAGE) {
			page->number = 0;
			if (from < PAGE || !read_counted(r, from - at, page->bytes, PAGE))
				return false;
			page->number = from / PAGE;
		}
		memcpy(to, page->bytes + at, n);
		to = (char *)to + n;
		from += n;
		len -= n;
	}
	return true;
}

static bool read_word(struct reader *r, uint64_t from, uint64_t *ret)
{
	return cw_python_read(&r->counted, from, ret, sizeof(*ret));
}

static bool is_exhausted(const struct reader *r)
{
	return r->summary.n_reads == MAX_READS;
}

static uint64_t word(const uint8_t *bytes, unsigned offset)
{
	uint64_t v;

	memcpy(&v, bytes + offset, sizeof(v));
	return v;
}

/* ---- a thread's state ---- */

struct thread_head {
	uint64_t previous, next, interpreter, frame, id, native_id;
};

static size_t thread_bytes(const struct cw_python_layout *l)
{
	const uint16_t fields[] = { l->thread_previous, l->thread_next, l->thread_interpreter,
				    l->thread_frame,    l->thread_id,   l->thread_native_id };
	uint16_t last = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		last = fields[i] > last ? fields[i] : last;
	return last + sizeof(uint64_t);
}

static bool read_thread_head(struct reader *r, uint64_t thread, struct thread_head *ret)
{
	const struct cw_python_layout *l = r->layout;
	uint8_t head[HEAD_BYTES];

	if (thread & 7 || !cw_python_read(&r->counted, thread, head, thread_bytes(l)))
		return false;
	*ret = (struct thread_head){
		.previous = word(head, l->thread_previous),
		.next = word(head, l->thread_next),
		.interpreter = word(head, l->thread_interpreter),
		.frame = word(head, l->thread_frame),
		.id = word(head, l->thread_id),
		.native_id = l->thread_native_id ? word(head, l->thread_native_id) : 0,
	};
	return true;
}

/* ---- the chain of frames ---- */

/* A copy of memory that ends just before address `end`. Only the last `have` bytes are valid. */
struct view {
	uint64_t end;
	size_t have;
	uint8_t bytes[VIEW_BYTES];
};

static const uint8_t *view_frame(struct reader *r, struct view *v, uint64_t frame)
{
	size_t len = r->layout->frame_bytes;
	uint64_t end = frame + len;

	if (frame & 7 || end < frame)
		return NULL;
	if (!v->have || end > v->end || frame < v->end - v->have) {
		/* A frame object has no other frames as neighbours, so we read only this one. */
		v->have = r->layout->has_frame_objects || end < VIEW_BYTES ? len : VIEW_BYTES;
		v->end = end;
		if (!cw_python_read(&r->counted, end - v->have, v->bytes + VIEW_BYTES - v->have,
				    v->have)) {
			v->have = len; /* the memory before the frame may be unmapped */
			if (!cw_python_read(&r->counted, frame, v->bytes + VIEW_BYTES - len, len))
				return NULL;
		}
	}
	return v->bytes + (VIEW_BYTES - (v->end - frame));
}

static bool find_innermost(struct reader *r, const struct thread_head *head, uint64_t *ret)
{
	*ret = head->frame;
	return !r->layout->is_via_cframe || !head->frame ||
	       read_word(r, head->frame + r->layout->cframe_frame, ret);
}

static struct link link_of(const struct cw_python_layout *l, uint64_t frame, const uint8_t *bytes)
{
	struct link link = { .frame = frame,
			     .code = word(bytes, l->code) & ~CW_PYTHON_POINTER_TAGS };
	int32_t index;

	link.is_entry = l->has_frame_objects || (l->is_entry && bytes[l->is_entry]);
	if (l->has_frame_objects) {
		memcpy(&index, bytes + l->instr, sizeof(index));
		link.instr = (uint64_t)(int64_t)index;
	} else {
		link.instr = word(bytes, l->instr);
	}
	return link;
}

/*
 * Reads the chain of a thread once. Returns false if a frame is unreadable, or if the chain has no
 * end.
 */
static bool read_chain(struct reader *r, const struct thread_head *head, struct chain *ret)
{
	const struct cw_python_layout *l = r->layout;
	struct view v = { .have = 0 };
	uint64_t frame;

	ret->n = 0;
	ret->is_cut = false;
	if (!find_innermost(r, head, &frame))
		return false;
	for (unsigned step = 0; frame; step++) {
		const uint8_t *bytes;

		if (ret->n == CW_PYTHON_READ_FRAMES) {
			ret->is_cut = true;
			return true;
		}
		bytes = step < MAX_STEPS ? view_frame(r, &v, frame) : NULL;
		if (!bytes)
			return false;
		if (l->has_frame_objects || bytes[l->owner] < CW_PYTHON_OWNER_C)
			ret->links[ret->n++] = link_of(l, frame, bytes);
		else if (ret->n)
			ret->links[ret->n - 1].is_entry = true;
		frame = word(bytes, l->previous);
	}
	if (ret->n)
		ret->links[ret->n - 1].is_entry = true;
	return true;
}

/* ---- the interpreter lock ---- */

struct lock {
	uint64_t address;  /* address of the lock; 0 = not found */
	uint64_t holder;   /* the thread that took the lock last */
	uint64_t switches; /* how often the lock went to another thread */
	bool is_taken;
};

static uint64_t find_lock(struct reader *r, uint64_t interpreter)
{
	uint64_t address = 0;

	if (!r->layout->interpreter_lock)
		return r->config->runtime->address + r->layout->runtime_lock;
	return read_word(r, interpreter + r->layout->interpreter_lock, &address) ? address : 0;
}

/*
 * Reads the interpreter lock. If no thread holds the lock, we cannot use it to show that a thread's
 * frames did not change.
 */
static struct lock read_lock(struct reader *r, uint64_t address)
{
	const struct cw_python_layout *l = r->layout;
	struct lock lock = { .address = address };
	uint8_t bytes[64];
	int32_t is_taken;

	if (!address ||
	    !cw_python_read(&r->counted, address, bytes, l->lock_switches + sizeof(lock.switches)))
		return (struct lock){ 0 };
	memcpy(&is_taken, bytes + l->lock_is_taken, sizeof(is_taken));
	lock.is_taken = is_taken == 1;
	lock.holder = word(bytes, l->lock_holder);
	lock.switches = word(bytes, l->lock_switches);
	return lock;
}

static bool is_listed(const struct reader *r, uint64_t thread)
{
	for (unsigned i = 0; i < r->n_threads; i++)
		if (r->threads[i] == thread)
			return true;
	return false;
}

/*
 * Returns whether the thread did not have the lock between the two reads of the lock. Such a thread
 * ran no Python code, so its frames did not change. If the holder is not a thread of the list, we
 * have not found the real lock.
 */
static bool had_no_lock(const struct reader *r, const struct lock *before, const struct lock *after,
			uint64_t thread)
{
	return before->holder != thread && after->holder == before->holder &&
	       after->switches == before->switches && is_listed(r, before->holder);
}

/* ---- a chain that holds still ---- */

static bool is_same_link(const struct link *a, const struct link *b)
{
	return a->frame == b->frame && a->code == b->code && a->instr == b->instr;
}

/* Returns whether the chains are equal, apart from the place inside the innermost frame. */
static bool is_same(const struct chain *a, const struct chain *b)
{
	if (a->n != b->n || a->is_cut != b->is_cut)
		return false;
	for (unsigned i = 1; i < a->n; i++)
		if (!is_same_link(&a->links[i], &b->links[i]))
			return false;
	return !a->n ||
	       (a->links[0].frame == b->links[0].frame && a->links[0].code == b->links[0].code);
}

/*
 * Removes from `common` all frames but the outer frames that `other` has, too. The innermost of
 * these frames may stand at another place, and then gets the place of `other`.
 */
static void keep_common(struct chain *common, const struct chain *other)
{
	unsigned n = 0;

	if (common->is_cut || other->is_cut) {
		common->n = 0; /* we do not know the outermost frames of a cut chain */
		return;
	}
	for (bool is_equal = true; is_equal && n < common->n && n < other->n; n++) {
		struct link *kept = &common->links[common->n - 1 - n];
		const struct link *of_other = &other->links[other->n - 1 - n];

		if (kept->frame != of_other->frame || kept->code != of_other->code)
			break;
		is_equal = kept->instr == of_other->instr;
		kept->instr = of_other->instr;
	}
	memmove(common->links, common->links + (common->n - n), n * sizeof(common->links[0]));
	common->n = n;
}

/*
 * Waits for a moment of random length. Otherwise our reads might keep step with a loop of the
 * program and see the same phase each time.
 */
static void wait_irregularly(struct reader *r)
{
	r->random = r->random * 1103515245u + 12345u;
	for (volatile unsigned i = (r->random >> 16) & 2047; i; i--)
		;
}

/*
 * Reads the chain of a thread. A thread without the interpreter lock holds still, so one read
 * suffices. Any other thread may run. We read its chain until EQUAL_READS reads in a row agree. If
 * they never agree, *ret has the outer frames that all reads have in common. *head is the thread's
 * state as of the last read.
 */
static enum cw_python_thread_state read_steady(struct reader *r, uint64_t thread,
					       uint64_t interpreter, uint64_t lock_address,
					       struct thread_head *head, struct chain *ret)
{
	struct lock before, after = read_lock(r, lock_address);
	struct chain *now = &r->chains[0], *last = &r->chains[1], *swap;
	unsigned n_equal = 0, n_failed = 0, n_read = 0;

	ret->n = 0;
	for (unsigned i = 0; i < CHAIN_ATTEMPTS && !is_exhausted(r); i++) {
		bool is_read, is_still;

		if (i)
			wait_irregularly(r);
		if (!read_thread_head(r, thread, head) || head->interpreter != interpreter)
			return CW_PYTHON_THREAD_CHANGED; /* the thread has ended */
		is_read = read_chain(r, head, now);
		before = after;
		after = read_lock(r, lock_address);
		is_still = had_no_lock(r, &before, &after, thread);
		if (!is_read) {
			n_equal = 0;
			n_failed = n_read ? 0 : n_failed + 1;
			if (is_still || n_failed == EQUAL_READS)
				return CW_PYTHON_THREAD_UNREADABLE;
			continue;
		}
		n_equal = n_equal && is_same(last, now) ? n_equal + 1 : 1;
		if (is_still || n_equal == EQUAL_READS) {
			*ret = *now;
			return now->is_cut ? CW_PYTHON_THREAD_CUT : CW_PYTHON_THREAD_READ;
		}
		if (n_read++)
			keep_common(ret, now);
		else
			*ret = *now;
		swap = last;
		last = now;
		now = swap;
	}
	return CW_PYTHON_THREAD_CHANGED;
}

/* ---- the names of frames ---- */

static size_t put_utf8(uint32_t c, char *to)
{
	if (c >= 0x80 && c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c >= 0x800 && c < 0x10000 && (c < 0xd800 || c >= 0xe000)) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	if (c >= 0x10000 && c < 0x110000) {
		to[0] = (char)(0xf0 | c >> 18);
		to[1] = (char)(0x80 | (c >> 12 & 63));
		to[2] = (char)(0x80 | (c >> 6 & 63));
		to[3] = (char)(0x80 | (c & 63));
		return 4;
	}
	to[0] = c && c < 0x80 ? (char)c : '?';
	return 1;
}

/*
 * Copies a text as UTF-8. If a path is too long, we copy its end, from a slash on if possible. Of
 * any other long text we copy the beginning.
 */
static void copy_text(struct reader *r, uint64_t text, bool is_path, char *to, size_t size)
{
	uint8_t piece[TEXT_PIECE * 4];
	char utf8[TEXT_PIECE * 4 + 1];
	struct cw_python_characters c;
	size_t used = 0, at = 0;
	uint32_t n, skip;
	char *slash;

	memcpy(to, "???", sizeof("???"));
	if (!cw_python_characters(&r->cached, r->layout, text, &c))
		return;
	n = c.n < TEXT_PIECE ? c.n : TEXT_PIECE;
	skip = is_path ? c.n - n : 0;
	if (!n ||
	    !cw_python_read(&r->cached, c.from + (uint64_t)skip * c.width, piece, n * c.width))
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t character = 0;

		memcpy(&character, piece + i * c.width, c.width);
		used += put_utf8(character, utf8 + used);
	}
	utf8[used] = '\0';
	if (is_path && (skip || used >= size)) {
		at = used >= size ? used - (size - 1) : 0;
		slash = strchr(utf8 + at, '/');
		if (slash)
			at = (size_t)(slash - utf8);
		while ((utf8[at] & 0xc0) == 0x80)
			at++;
		used -= at;
	} else if (used >= size) {
		used = size - 1;
		while (used && (utf8[used] & 0xc0) == 0x80)
			used--;
	}
	memcpy(to, utf8 + at, used);
	to[used] = '\0';
}

static size_t code_bytes(const struct cw_python_layout *l)
{
	const uint16_t fields[] = { l->first_line, l->file, l->name, l->line_table };
	uint16_t last = CW_PYTHON_TYPE;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		last = fields[i] > last ? fields[i] : last;
	return last + sizeof(uint64_t);
}

/* Fills in the frame. Returns false if the link leads to no code object. */
static bool describe(struct reader *r, const struct link *link, struct cw_python_frame *ret)
{
	const struct cw_python_layout *l = r->layout;
	struct cw_python_place at = { .code = link->code, .instr = link->instr };
	uint8_t code[HEAD_BYTES];

	if (!cw_python_read(&r->counted, link->code, code, code_bytes(l)) ||
	    word(code, CW_PYTHON_TYPE) != r->config->runtime->code_type)
		return false;
	memcpy(&at.first_line, code + l->first_line, sizeof(at.first_line));
	at.line_table = word(code, l->line_table);
	ret->is_entry = link->is_entry;
	ret->line = cw_python_line(&r->cached, l, &at);
	copy_text(r, word(code, l->file), true, ret->file, sizeof(ret->file));
	copy_text(r, word(code, l->name), false, ret->function, sizeof(ret->function));
	return true;
}

/* ---- threads ---- */

static const struct cw_python_task *task_of(const struct reader *r, uint64_t inner_tid)
{
	for (size_t i = 0; i < r->config->n_tasks; i++)
		if (r->config->tasks[i].inner_tid > 0 &&
		    (uint64_t)r->config->tasks[i].inner_tid == inner_tid)
			return &r->config->tasks[i];
	return NULL;
}

static const struct cw_python_task *find_task(struct reader *r, const struct thread_head *head)
{
	const struct cw_python_task *task = task_of(r, head->native_id);
#ifdef PTHREAD_TID
	uint32_t tid;

	if (!task && head->id &&
	    cw_python_read(&r->counted, head->id + PTHREAD_TID, &tid, sizeof(tid)))
		task = task_of(r, tid);
#endif
	return task;
}

static bool wants(const struct reader *r, uint64_t lock_address, const struct cw_python_task *task)
{
	uint64_t from = lock_address + r->layout->lock_condition;

	return lock_address && task && task->futex >= from &&
	       task->futex < from + CW_PYTHON_CONDITION_BYTES;
}

/* Describes all frames of a chain. Returns false if a frame has no code object. */
static bool describe_all(struct reader *r, const struct chain *chain)
{
	for (unsigned i = 0; i < chain->n; i++)
		if (!describe(r, &chain->links[i], &r->frames[i]))
			return false;
	return true;
}

/*
 * Reads one thread and passes it to the callback. `lock` is the lock as of the start of the
 * interpreter's threads. With one copy for all threads, at most one thread appears to hold it.
 */
static void read_thread(struct reader *r, uint64_t thread, uint64_t interpreter,
			const struct lock *lock)
{
	struct cw_python_thread t = { .frames = r->frames };
	struct thread_head head = { 0 };
	struct chain chain;
	struct lock now;

	t.state = read_steady(r, thread, interpreter, lock->address, &head, &chain);
	if (head.interpreter != interpreter)
		return; /* the thread has ended, or is only beginning */
	now = read_lock(r, lock->address);
	t.id = head.id;
	t.task = find_task(r, &head);
	t.holds_lock =
		lock->is_taken && lock->holder == thread && now.is_taken && now.holder == thread;
	t.wants_lock = !t.holds_lock && wants(r, lock->address, t.task);
	if (t.state != CW_PYTHON_THREAD_UNREADABLE && !describe_all(r, &chain))
		t.state = CW_PYTHON_THREAD_UNREADABLE;
	t.n_frames = t.state == CW_PYTHON_THREAD_UNREADABLE ? 0 : chain.n;
	r->summary.n_threads++;
	r->summary.n_changed += t.state == CW_PYTHON_THREAD_CHANGED;
	r->summary.n_unreadable += t.state == CW_PYTHON_THREAD_UNREADABLE;
	r->summary.n_cut += t.state == CW_PYTHON_THREAD_CUT;
	r->config->fn(&t, r->config->user);
}

/*
 * Lists the threads of an interpreter. Each thread's state must point back to the thread before it.
 * A list that changes during our walk, or that leads in a circle, fails this check. Returns false
 * if the links do not agree.
 */
static bool list_threads(struct reader *r, uint64_t interpreter)
{
	uint64_t thread = 0, before = 0;
	struct thread_head head;

	r->n_threads = 0;
	r->odd_thread = 0;
	if (!read_word(r, interpreter + r->layout->interpreter_threads, &thread))
		return false;
	for (; thread; thread = head.next) {
		if (r->n_threads == CW_PYTHON_READ_THREADS) {
			r->summary.has_more = true;
			break;
		}
		if (!read_thread_head(r, thread, &head) || head.interpreter != interpreter ||
		    head.previous != before) {
			r->odd_thread = thread;
			return false;
		}
		r->threads[r->n_threads++] = before = thread;
	}
	return true;
}

static enum cw_python_result read_interpreter(struct reader *r, uint64_t interpreter)
{
	uint64_t odd = UINT64_MAX;
	bool has_list = false;
	struct lock lock;

	for (unsigned i = 0; i < LIST_ATTEMPTS && !is_exhausted(r); i++) {
		has_list = list_threads(r, interpreter);
		if (has_list)
			break;
		/*
		 * A changing list fails at varying places. Two failures in a row at the same place
		 * mean that the memory does not fit the version.
		 */
		if (r->odd_thread == odd)
			return CW_PYTHON_ODD;
		odd = r->odd_thread;
	}
	if (!has_list)
		return CW_PYTHON_UNSTEADY;
	lock = read_lock(r, find_lock(r, interpreter));
	for (unsigned i = 0; i < r->n_threads && !is_exhausted(r); i++)
		read_thread(r, r->threads[i], interpreter, &lock);
	return CW_PYTHON_READ;
}

static enum cw_python_result read_interpreters(struct reader *r)
{
	uint64_t from = r->config->runtime->address + r->layout->runtime_interpreters;
	enum cw_python_result result = CW_PYTHON_READ;
	uint64_t interpreter;

	if (!read_word(r, from, &interpreter))
		return CW_PYTHON_ODD;
	if (!interpreter)
		return CW_PYTHON_IDLE;
	for (unsigned i = 0; interpreter && result == CW_PYTHON_READ; i++) {
		if (i == MAX_INTERPRETERS) {
			r->summary.has_more = true;
			break;
		}
		result = read_interpreter(r, interpreter);
		if (!read_word(r, interpreter + r->layout->interpreter_next, &interpreter))
			return CW_PYTHON_ODD;
	}
	return result;
}

enum cw_python_result cw_python_read_threads(const struct cw_python_read_config *config,
					     struct cw_python_read_summary *ret)
{
	struct reader r = { .config = config, .layout = &config->runtime->layout };
	enum cw_python_result result;

	r.counted = (struct cw_python_memory){ .read = read_counted, .user = &r };
	r.cached = (struct cw_python_memory){ .read = read_cached, .user = &r };
	result = read_interpreters(&r);
	if (is_exhausted(&r))
		result = CW_PYTHON_EXHAUSTED;
	else if (result == CW_PYTHON_READ && !r.summary.n_threads)
		result = CW_PYTHON_IDLE;
	*ret = r.summary;
	return result;
}
