/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We give libdwfl one thread at a time: its registers and its stack from the copy, and modules with
 * open files. We end a stack at a frame whose stack pointer is not above that of the frame before.
 * A loop or a forged stack therefore ends, too.
 */
#include "daemon/evidence/unwinder.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "daemon/evidence/demangle.h"
#include "daemon/evidence/evidence_text.h"

#define MAX_SYMBOL_BYTES 256u
#define MAX_MODULE_BYTES 64u
#define MAX_FILE_BYTES 256u

#if defined(__x86_64__)
#define N_REGS 16
#define SP_REG 7
#elif defined(__aarch64__)
#define N_REGS 32
#define SP_REG 31
#endif

struct cw_unwinder {
	const struct cw_stack_copy *copy;
	struct cw_stack_modules *mods;
	Dwfl *dwfl;
};

/* ---- callbacks for libdwfl ---- */

/* Gives libdwfl the ELF file of this module. libdwfl then owns the descriptor. */
static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	struct cw_stack_module *m = *userdata;

	*file_name = NULL;
	if (m && m->image_len) {
		*elf = elf_memory((char *)m->image, m->image_len);
		return -1;
	}
	if (!m || m->fd < 0)
		return -1;
	*file_name = strdup(m->path);
	return dup(m->fd);
}

/*
 * Finds separate debug information only by its build-id. A file name inside the ELF file could lead
 * to any file.
 */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **ret_name)
{
	const unsigned char *id;
	GElf_Addr vaddr;
	char hex[2 * CW_BUILD_ID_MAX + 1], path[256];
	struct stat st;
	int n = dwfl_module_build_id(mod, &id, &vaddr);
	int fd;

	if (n < 2 || n > (int)CW_BUILD_ID_MAX)
		return -1;
	for (int i = 0; i < n; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", id[i]);
	(void)snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		closep(&fd);
		return -1;
	}
	*ret_name = strdup(path);
	return fd;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	return 0; /* no list of threads, because we select each thread by tid */
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	struct cw_unwinder *u = arg;

	for (uint32_t i = 0; i < u->copy->n_threads; i++) {
		if (u->copy->threads[i].tid == tid) {
			*thread_arg = (void *)&u->copy->threads[i];
			return true;
		}
	}
	return false;
}

static bool set_registers(Dwfl_Thread *thread, void *thread_arg)
{
	const struct cw_stack_thread *t = thread_arg;
	Dwarf_Word sp = t->sp, pc = t->pc;

	if (t->result == CW_STACK_PEEKED) {
		if (!dwfl_thread_state_registers(thread, SP_REG, 1, &sp))
			return false;
	} else if (!dwfl_thread_state_registers(thread, 0, N_REGS, t->regs)) {
		return false;
	}
#if defined(__x86_64__)
	/* In DWARF, register 16 is the return address. */
	return dwfl_thread_state_registers(thread, 16, 1, &pc);
#else
	dwfl_thread_state_register_pc(thread, pc);
	return true;
#endif
}

/*
 * Reads one word of a stack. libdwfl needs only the stack of the current thread. It does not tell
 * us which thread this is, so we search all stacks.
 */
static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	struct cw_unwinder *u = arg;

	for (uint32_t i = 0; i < u->copy->n_threads; i++) {
		const struct cw_stack_thread *t = &u->copy->threads[i];
		uint64_t offset = addr - t->stack_start;

		if (addr >= t->stack_start && t->stack_len >= sizeof(*ret) &&
		    offset <= t->stack_len - sizeof(*ret)) {
			memcpy(ret, u->copy->stacks[i] + offset, sizeof(*ret));
			return true;
		}
	}
	return false;
}

static const Dwfl_Callbacks dwfl_callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debuginfo,
};

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* ---- frames ---- */

/*
 * Returns the symbol as we show it. We cut the version off "name@@VERSION", because it does not
 * help to find the position of a rank.
 */
static json_t *symbol_text(const char *symbol)
{
	_cleanup_(freep) char *name = symbol ? cw_demangle(symbol) : NULL;

	if (name)
		return cw_evidence_text_or_null(name, MAX_SYMBOL_BYTES);
	if (!symbol || *symbol == '@')
		return cw_evidence_text_or_null(symbol, MAX_SYMBOL_BYTES);
	return cw_evidence_text(symbol, strcspn(symbol, "@"), MAX_SYMBOL_BYTES);
}

/*
 * Describes one frame. pc: the address that we show. at: an address inside the instruction, for the
 * look-up of the symbol.
 */
static json_t *describe_frame(struct cw_unwinder *u, Dwarf_Addr pc, Dwarf_Addr at)
{
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, at);
	const char *symbol = NULL, *file = NULL, *module = NULL;
	void **userdata;
	GElf_Off offset = 0;
	GElf_Sym sym;
	Dwfl_Line *line;
	int number = 0;
	char text[32];

	if (mod) {
		symbol = dwfl_module_addrinfo(mod, at, &offset, &sym, NULL, NULL, NULL);
		line = dwfl_module_getsrc(mod, at);
		file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
		(void)dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		if (*userdata)
			module = cw_text_base_name(((struct cw_stack_module *)*userdata)->path);
	}
	(void)snprintf(text, sizeof(text), "0x%" PRIx64, (uint64_t)pc);
	return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "pc", text, "symbol",
			 symbol_text(symbol), "offset",
			 (json_int_t)(symbol ? offset + (pc - at) : 0), "module",
			 cw_evidence_text_or_null(module, MAX_MODULE_BYTES), "file",
			 cw_evidence_text_or_null(file, MAX_FILE_BYTES), "line",
			 file && number > 0 ? json_integer(number) : json_null());
}

struct walk {
	struct cw_unwinder *u;
	json_t *frames;
	Dwarf_Word last_sp;
};

#ifndef CW_HAVE_DWFL_FRAME_REG
/* elfutils before 0.188 lacks this function. Only CW_STACK_MAX_FRAMES then ends a loop. */
static int dwfl_frame_reg(Dwfl_Frame *state, unsigned regno, Dwarf_Word *ret)
{
	(void)state;
	(void)regno;
	(void)ret;
	return -1;
}
#endif

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct walk *w = arg;
	Dwarf_Addr pc;
	Dwarf_Word sp = 0;
	bool is_activation;
	size_t n = json_array_size(w->frames);

	if (!dwfl_frame_pc(state, &pc, &is_activation) || pc == 0)
		return DWARF_CB_ABORT;
	/*
	 * The stack pointer must be above that of the inner frame. Otherwise this is a loop or a
	 * forged stack.
	 */
	if (dwfl_frame_reg(state, SP_REG, &sp) == 0) {
		if (n > 1 && sp <= w->last_sp)
			return DWARF_CB_ABORT;
		w->last_sp = sp;
	}
	/*
	 * Look up pc - 1. A return address is just after the call, and the call may be the last
	 * instruction of its function.
	 */
	if (json_array_append_new(w->frames,
				  describe_frame(w->u, pc, is_activation ? pc : pc - 1)) < 0)
		return DWARF_CB_ABORT;
	return n + 1 < CW_STACK_MAX_FRAMES ? DWARF_CB_OK : DWARF_CB_ABORT;
}

json_t *cw_unwinder_frames(struct cw_unwinder *u, uint32_t i)
{
	const struct cw_stack_thread *t = &u->copy->threads[i];
	struct walk w = { .u = u, .frames = json_array() };

	if (!w.frames)
		return NULL;
	/* Ignore the result, because most stacks end with an error. */
	(void)dwfl_getthread_frames(u->dwfl, t->tid, on_frame, &w);
	if (json_array_size(w.frames) == 0)
		(void)json_array_append_new(w.frames, describe_frame(u, t->pc, t->pc));
	return w.frames;
}

static int report_modules(struct cw_unwinder *u)
{
	dwfl_report_begin(u->dwfl);
	for (size_t i = 0; i < u->mods->n; i++) {
		struct cw_stack_module *m = &u->mods->list[i];
		Dwfl_Module *mod;
		void **userdata;

		if (!m->is_wanted)
			continue;
		mod = dwfl_report_module(u->dwfl, m->path, m->start, m->end);
		if (!mod)
			return -ENOMEM;
		(void)dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = m;
	}
	return dwfl_report_end(u->dwfl, NULL, NULL) == 0 ? 0 : -EIO;
}

int cw_unwinder_new(const struct cw_stack_copy *copy, struct cw_stack_modules *mods,
		    struct cw_unwinder **ret)
{
	struct cw_unwinder *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	u->copy = copy;
	u->mods = mods;
	(void)elf_version(EV_CURRENT); /* cannot fail: every libelf since 1993 knows this version */
	u->dwfl = dwfl_begin(&dwfl_callbacks);
	r = u->dwfl ? report_modules(u) : -ENOMEM;
	if (r == 0 && !dwfl_attach_state(u->dwfl, NULL, copy->pid, &thread_callbacks, u))
		r = -ENOEXEC; /* no module could be read as ELF */
	if (r < 0) {
		cw_unwinder_free(u);
		return r;
	}
	*ret = u;
	return 0;
}

struct cw_unwinder *cw_unwinder_free(struct cw_unwinder *u)
{
	if (!u)
		return NULL;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	free(u);
	return NULL;
}
