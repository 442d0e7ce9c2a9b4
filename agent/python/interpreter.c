/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/interpreter.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/next_dlsym.h"
#include "agent/base/state.h"
#include "agent/record/record.h"

typedef int (*dladdr1_fn)(const void *address, Dl_info *info, void **extra, int flags);

static atomic_flag is_noted = ATOMIC_FLAG_INIT;

/*
 * Returns the size of the symbol `runtime`; 0 = not known. We look up dladdr1 by name, because
 * other versions of glibc have it in another library.
 */
static uint64_t bytes_of(cw_dlsym_fn next, const void *runtime)
{
	dladdr1_fn dladdr1_of_libc = (dladdr1_fn)next(RTLD_DEFAULT, "dladdr1");
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (!dladdr1_of_libc ||
	    !dladdr1_of_libc(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	    info.dli_saddr != runtime)
		return 0;
	return symbol->st_size;
}

void cw_interpreter_note(void)
{
	struct cw_rec_header *h = cw_record.header;
	cw_dlsym_fn next = cw_next_dlsym_get();
	int saved_errno = errno;
	const void *runtime;

	if (!next || atomic_flag_test_and_set(&is_noted))
		return;
	runtime = next(RTLD_DEFAULT, "_PyRuntime");
	if (runtime && !next(RTLD_DEFAULT, "_Py_DecRefShared")) {
		CW_STORE(h->interpreter_bytes, bytes_of(next, runtime));
		CW_STORE(h->interpreter_address, (uint64_t)(uintptr_t)runtime);
	}
	(void)dlerror();
	errno = saved_errno;
}
