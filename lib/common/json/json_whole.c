/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jansson collects the bytes of a text or number in a buffer that doubles. It does not check
 * whether the buffer could grow, and then loses a byte. If that byte is the quote that ends a text,
 * jansson reads on past the buffer. If the byte belongs to a number, jansson aborts. jansson checks
 * all its other allocations.
 *
 * We therefore set aside a reserve for this buffer, large enough for the longest text or number of
 * the document. After the first use of the reserve we stop reading and drop the result.
 */
#include "common/json/json_whole.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* The initial size of jansson's buffer, which doubles from then on. */
#define TOKEN_BYTES ((size_t)16)

static __thread struct {
	unsigned failures; /* failed allocations of jansson */
	char *reserve;
	size_t used, bytes;
} memory;

/*
 * Returns memory from the reserve if the request has a size of jansson's buffer; NULL = it has not.
 * Some other requests have such a size and may use the reserve, too.
 */
static void *from_reserve(size_t bytes)
{
	void *p = memory.reserve + memory.used;

	if (bytes < 2 * TOKEN_BYTES || (bytes & (bytes - 1)) != 0 ||
	    bytes > memory.bytes - memory.used)
		return NULL;
	memory.used += bytes;
	return p;
}

static void *counted_malloc(size_t bytes)
{
	void *p = malloc(bytes);

	if (p)
		return p;
	memory.failures++;
	return memory.reserve ? from_reserve(bytes) : NULL;
}

static void counted_free(void *p)
{
	uintptr_t at = (uintptr_t)p, begin = (uintptr_t)memory.reserve;

	if (!memory.reserve || at < begin || at - begin >= memory.bytes)
		free(p);
}

/*
 * Returns the count, and installs our allocation functions in jansson, which count failures. We
 * never restore jansson's own functions. Our functions also free a block that jansson's own
 * functions allocated earlier.
 */
unsigned cw_json_failures(void)
{
	json_set_alloc_funcs(counted_malloc, counted_free);
	return memory.failures;
}

/*
 * Returns an upper limit of the longest token (text or number) in bytes. The limit is the length of
 * the longest text with its quotes, or of the longest run between two of ",: \n[]{}".
 */
static size_t longest_token(const char *text, size_t len)
{
	size_t longest = 0, begin = 0;
	bool is_text = false;

	for (size_t i = 0; i < len; i++) {
		if (is_text && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			is_text = !is_text;
		else if (!is_text && strchr(",: \n[]{}", text[i]))
			begin = i + 1;
		if (i + 1 - begin > longest)
			longest = i + 1 - begin;
	}
	return longest;
}

static bool set_reserve(const char *text, size_t len)
{
	size_t longest = longest_token(text, len), last = 2 * TOKEN_BYTES;

	/*
	 * The buffer needs one byte more than the token, and one to end it. Before it has that
	 * size, it has all smaller powers of two, which the reserve must hold as well.
	 */
	while (last < longest + 2)
		last *= 2;
	memory.reserve = malloc(2 * last);
	memory.bytes = 2 * last;
	memory.used = 0;
	return memory.reserve != NULL;
}

struct input {
	const char *at, *end;
	unsigned failures_before;
};

static size_t read_some(void *buf, size_t len, void *user)
{
	struct input *in = user;
	size_t left = (size_t)(in->end - in->at);

	if (memory.failures != in->failures_before)
		return 0;
	if (len > left)
		len = left;
	memcpy(buf, in->at, len);
	in->at += len;
	return len;
}

json_t *cw_json_parse(const char *text, size_t len, size_t flags, json_error_t *error)
{
	struct input in = { .at = text, .end = text + len, .failures_before = cw_json_failures() };
	bool is_whole;
	json_t *doc;

	if (!set_reserve(text, len)) {
		memory.failures++;
		errno = ENOMEM;
		return NULL;
	}
	doc = json_load_callback(read_some, &in, flags, error);
	is_whole = memory.failures == in.failures_before;
	if (!is_whole) {
		json_decref(doc);
		doc = NULL;
	}
	free(memory.reserve);
	memory.reserve = NULL;
	if (!doc)
		errno = is_whole ? EBADMSG : ENOMEM;
	return doc;
}

json_t *cw_json_parse_text(const char *text, size_t flags)
{
	return cw_json_parse(text, strlen(text), flags, NULL);
}

/* Reads fd up to its end. The caller releases *ret_text with free(). Returns 0 or -errno. */
static int read_all(int fd, char **ret_text, size_t *ret_len)
{
	_cleanup_(freep) char *text = NULL;
	size_t len = 0, room = 0;

	for (;;) {
		ssize_t n;

		if (len == room) {
			char *grown = realloc(text, room ? 2 * room : 4096);

			if (!grown)
				return -ENOMEM;
			text = grown;
			room = room ? 2 * room : 4096;
		}
		n = read(fd, text + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret_text = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

json_t *cw_json_parse_fd(int fd, size_t flags, json_error_t *error)
{
	_cleanup_(freep) char *text = NULL;
	size_t len = 0;
	json_t *doc;
	int r = read_all(fd, &text, &len);

	if (r < 0) {
		memory.failures += r == -ENOMEM;
		errno = -r;
		return NULL;
	}
	doc = cw_json_parse(text, len, flags, error);
	r = errno;
	free(steal_ptr(&text));
	errno = r;
	return doc;
}

char *cw_json_write(const json_t *doc, size_t flags)
{
	unsigned before = cw_json_failures();
	char *text = json_dumps(doc, flags);

	if (memory.failures == before)
		return text;
	counted_free(text);
	return NULL;
}
