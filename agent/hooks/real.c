/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the real NCCL functions. NCCL defines every function twice, as ncclX (weak) and as pncclX.
 * We prefer the second name, because no wrapper uses it.
 *
 * If the program links NCCL, RTLD_NEXT finds it. If a Python extension loads NCCL (RTLD_LOCAL),
 * RTLD_NEXT does not find it, although the extension's references still bind to our exported
 * wrappers. We then search for the loaded file libnccl.so.2. At last we search every loaded file,
 * which finds a static NCCL inside libtorch_cuda.so.
 *
 * We hold no lock of ours across a call into the loader. Another thread may be inside dlopen and
 * run a constructor that looks up NCCL. The two threads would then wait for each other. We
 * therefore look everything up into a local copy and publish the copy afterwards.
 */
#include "agent/hooks/real.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "agent/base/log.h"
#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"

enum {
#define F(ret, name, since, how, params, args) IDX_##name,
#define F0(ret, name, since, how) IDX_##name,
	CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0
		IDX__MAX
};

static const char *const names[IDX__MAX] = {
#define F(ret, name, since, how, params, args) "p" #name,
#define F0(ret, name, since, how) "p" #name,
	CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0
};

#define LINKED_WAIT_NS 1000000000u
#define FILES_AT_ONCE 16

CW_HOT_DATA struct cw_real cw_real_sets[CW_NCCL_SETS];

/* The first members of a set are one pointer per row, in table order. */
_Static_assert(offsetof(struct cw_real, code_start) == IDX__MAX * sizeof(void *), "set layout");

static void **members(struct cw_real *real)
{
	return (void **)real;
}

void *cw_real_member(const struct cw_real *real, unsigned index)
{
	return ((void *const *)real)[index];
}

int cw_real_index(const char *name)
{
	for (int i = 0; i < IDX__MAX; i++) {
		if (strcmp(names[i] + 1, name) == 0)
			return i;
	}
	return -1;
}

static void *lookup(void *handle, unsigned index)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	void *p = next ? next(handle, names[index]) : NULL;

	if (!p && next)
		p = next(handle, names[index] + 1);
	/*
	 * The look-up may find our own wrapper in the global scope. The wrapper would then call
	 * itself.
	 */
	return p == cw_wrapper(0, index) ? NULL : p;
}

/*
 * Sets the code range to the file that contains addr. Sets no range if NCCL is static, and the file
 * therefore contains other code, too.
 */
static void find_code(struct cw_real *real, void *addr)
{
	const ElfW(Ehdr) * eh;
	const ElfW(Phdr) * ph;
	const char *base;
	uintptr_t end = 0;
	Dl_info info;

	if (!dladdr(addr, &info) || !info.dli_fname || !info.dli_fbase)
		return;
	base = strrchr(info.dli_fname, '/');
	base = base ? base + 1 : info.dli_fname;
	if (strncmp(base, "libnccl", strlen("libnccl")) != 0)
		return;
	eh = info.dli_fbase;
	ph = (const void *)((const char *)eh + eh->e_phoff);
	for (int i = 0; i < eh->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end)
			end = ph[i].p_vaddr + ph[i].p_memsz;
	}
	real->code_start = (uintptr_t)eh;
	real->code_end = (uintptr_t)eh + end;
}

/*
 * Copies the functions that we found into the set. Returns false if the set belongs to another copy
 * of NCCL. Threads that found the same NCCL copy the same values, so no thread needs to wait for
 * another. A wait would be dangerous. A signal handler must not wait for the thread that it
 * interrupted. A forked child must not wait for a thread that only its parent has.
 */
static bool publish(struct cw_real *set, const struct cw_real *found)
{
	const uintptr_t *from = (const uintptr_t *)found;
	uintptr_t *to = (uintptr_t *)set, nobody = 0;

	if (!atomic_compare_exchange_strong(&set->owner, &nobody, found->owner) &&
	    nobody != found->owner)
		return false;
	for (size_t i = 0; i < offsetof(struct cw_real, state) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
	atomic_store_explicit(&set->state, CW_REAL_READY, memory_order_release);
	return true;
}

/*
 * Publishes set 0. While NCCL is being loaded, two threads may find two copies for the linked
 * callers. The first thread wins. The second thread waits until the set is ready, but at most
 * LINKED_WAIT_NS. After a fork the first thread may exist only in the parent.
 */
static void publish_linked(const struct cw_real *found)
{
	struct cw_real *set = &cw_real_sets[0];
	uint64_t until;

	if (publish(set, found))
		return;
	until = cw_now_ns() + LINKED_WAIT_NS;
	while (atomic_load_explicit(&set->state, memory_order_acquire) != CW_REAL_READY &&
	       cw_now_ns() < until)
		(void)sched_yield();
}

/* Looks up all functions in handle. Returns false if handle leads to no NCCL. */
static bool fill(struct cw_real *real, void *handle)
{
	void *first;

	memset(real, 0, sizeof(*real));
	first = lookup(handle, IDX_ncclAllReduce);
	if (!first)
		first = lookup(handle, IDX_ncclGetVersion);
	if (!first)
		return false;
	for (unsigned i = 0; i < IDX__MAX; i++)
		members(real)[i] = lookup(handle, i);
	atomic_init(&real->owner, (uintptr_t)first);
	find_code(real, first);
	return true;
}

/* Keeps NCCL loaded, because our wrappers point into it. */
static void pin(void *addr)
{
	Dl_info info;

	if (dladdr(addr, &info) && info.dli_fname)
		(void)dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY); /* we never close it */
}

/* ---- a static NCCL inside some loaded file ---- */

/*
 * The names of a few loaded files at a time. We keep this struct on the stack: neither threads nor
 * a parent and its child may share it.
 */
struct file_names {
	char names[FILES_AT_ONCE][256];
	unsigned skip, count;
};

static int on_file(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct file_names *files = arg;

	if (!info->dlpi_name || !info->dlpi_name[0] ||
	    strlen(info->dlpi_name) >= sizeof(files->names[0]))
		return 0;
	if (files->skip) {
		files->skip--;
		return 0;
	}
	strcpy(files->names[files->count++], info->dlpi_name);
	return files->count == FILES_AT_ONCE;
}

static bool fill_from_file(struct cw_real *real, const char *name)
{
	void *handle = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);

	if (!handle)
		return false;
	if (fill(real, handle))
		return true;
	(void)dlclose(handle);
	return false;
}

static bool fill_from_any_file(struct cw_real *real)
{
	struct file_names files;
	unsigned seen = 0;

	do {
		files.skip = seen;
		files.count = 0;
		(void)dl_iterate_phdr(on_file, &files); /* takes a lock of the loader */
		for (unsigned i = 0; i < files.count; i++) {
			if (fill_from_file(real, files.names[i]))
				return true;
		}
		seen += files.count;
	} while (files.count == FILES_AT_ONCE);
	return false;
}

void cw_real_resolve_linked(void)
{
	struct cw_real found;
	int saved_errno = errno;
	void *handle;

	if (fill(&found, RTLD_NEXT)) {
		publish_linked(&found);
		goto out;
	}
	handle = dlopen("libnccl.so.2", RTLD_NOLOAD | RTLD_LAZY);
	if ((handle && fill(&found, handle)) || fill_from_any_file(&found))
		publish_linked(&found);
	else
		cw_log("NCCL was not found among the loaded files");
out:
	(void)dlerror(); /* hides our failed look-ups from the application */
	errno = saved_errno;
}

int cw_real_set_of(void *handle, unsigned index, void *found)
{
	struct cw_real real;
	void *alias = lookup(handle, index);

	(void)cw_real_linked();
	for (int i = 0; i < CW_NCCL_SETS; i++) {
		struct cw_real *set = &cw_real_sets[i];
		void *member;

		if (atomic_load_explicit(&set->state, memory_order_acquire) != CW_REAL_READY) {
			if (i == 0 || !fill(&real, handle) || !publish(set, &real))
				continue; /* set 0 is only for programs that are linked with NCCL */
			pin(found);
		}
		member = cw_real_member(set, index);
		if (member && (member == found || member == alias))
			return i;
	}
	cw_log("one copy of NCCL too many in this process: it is not recorded");
	return -1;
}
