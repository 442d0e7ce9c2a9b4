/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We generate all wrappers from the table of hooks, and all have one shape. A wrapper takes six
 * registers, calls the driver's function with the same six, and returns its result. The do_…() of
 * the row records facts before or after the call.
 *
 * We learn the driver's function when the program looks it up. Only if the program is linked with
 * the driver do we look the function up ourselves.
 */
#include "agent/hooks/cuda_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "agent/base/cuda_abi.h"
#include "agent/base/state.h"
#include "agent/cuda/driver_waits.h"
#include "agent/hooks/real.h"
#include "agent/ops/graph.h"

#define CUDA_ERROR_NOT_SUPPORTED 801
#define PER_THREAD_DEFAULT_STREAM 2 /* CU_GET_PROC_ADDRESS_… */
#define INSTANTIATE_DEVICE_LAUNCH 4 /* CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH */
#define NODE_CHILD_GRAPH 4          /* CU_GRAPH_NODE_TYPE_GRAPH */
#define NODE_CONDITIONAL 13
#define NODE_UNION_OFFSET 16 /* offset of the type's own parameters in CUgraphNodeParams */

typedef uintptr_t reg;
typedef CUresult (*real_fn)(reg a, reg b, reg c, reg d, reg e, reg f);

enum {
#define X(symbol, name, since, until, ptsz, how) HOOK_##symbol,
	CW_CUDA_HOOKS(X)
#undef X
		HOOK__MAX
};

struct hook {
	const char *symbol, *name;
	int since, until, ptsz;
};

static const struct hook hooks[HOOK__MAX] = {
#define X(symbol, name, since, until, ptsz, how) { #symbol, name, since, until, ptsz },
	CW_CUDA_HOOKS(X)
#undef X
};

static void *reals[HOOK__MAX]; /* the driver's functions; we set each once */
static void *wrapper_of(unsigned hook);

/*
 * Finds the driver's function without a look-up by the program. If the program is linked with the
 * driver, the driver follows us in the search order.
 */
static void *resolve(unsigned hook)
{
	cw_dlsym_fn next = cw_next_dlsym_get();
	int saved_errno = errno;
	void *handle, *p = NULL;

	if (next)
		p = next(RTLD_NEXT, hooks[hook].symbol);
	if (!p && next) {
		handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
		p = handle ? next(handle, hooks[hook].symbol) : NULL;
	}
	(void)dlerror();
	if (p == wrapper_of(hook))
		p = NULL;
	if (p)
		__atomic_store_n(&reals[hook], p, __ATOMIC_RELEASE);
	errno = saved_errno;
	return p;
}

static real_fn real_of(unsigned hook)
{
	void *p = __atomic_load_n(&reals[hook], __ATOMIC_ACQUIRE);

	if (cw_unlikely(!p))
		p = resolve(hook);
	return (real_fn)p;
}

static bool is_of_driver(void *addr, Dl_info *ret_info)
{
	const char *base;

	if (!dladdr(addr, ret_info) || !ret_info->dli_fname)
		return false;
	base = strrchr(ret_info->dli_fname, '/');
	return strncmp(base ? base + 1 : ret_info->dli_fname, "libcuda.so", 10) == 0;
}

/*
 * Returns whether the addresses belong to two different drivers. Some programs look symbols up in
 * one libcuda.so.1 and then use another one.
 */
static bool are_of_two_drivers(void *a, void *b)
{
	Dl_info x, y;

	return is_of_driver(a, &x) && is_of_driver(b, &y) && x.dli_fbase != y.dli_fbase;
}

/*
 * Stores the driver's function and returns our wrapper in its place. A function of a second driver
 * is returned unchanged, because our wrapper would call the first driver.
 */
static void *replace(unsigned hook, void *found)
{
	void *known = NULL;

	if (found == wrapper_of(hook) ||
	    __atomic_compare_exchange_n(&reals[hook], &known, found, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE) ||
	    known == found || !are_of_two_drivers(known, found))
		return wrapper_of(hook);
	return found;
}

/*
 * Keeps the driver loaded, because our wrappers point into it. A CUDA runtime closes its own handle
 * at its end.
 */
static void pin(void *addr)
{
	Dl_info info;

	if (is_of_driver(addr, &info))
		(void)dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY); /* we never close it */
}

/* ---- one do_…() per kind of row: real = the driver's function, a … f = its arguments ---- */

static CUresult do_begin_capture(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	cw_graph_capture_seen();
	return real(a, b, c, d, e, f);
}

static CUresult do_capture_to_graph(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	cw_graph_capture_seen();
	cw_graph_capture_into((void *)b);
	return real(a, b, c, d, e, f);
}

static bool is_live(void)
{
	return cw_agent_is_armed() && !cw_tls.depth;
}

static CUresult do_wait(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	int place = is_live() ? cw_driver_wait_enter() : -1;
	CUresult r = real(a, b, c, d, e, f);

	cw_driver_wait_leave(place);
	return r;
}

static CUresult do_end_capture(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	uint64_t id = is_live() ? cw_graph_capture_id((cudaStream_t)a) : 0;
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && b && id)
		cw_graph_captured(*(void **)b, id);
	return r;
}

/*
 * Handles the creation of a graph. The driver may reuse the handle of a destroyed graph, so we
 * forget the facts of that graph.
 */
static CUresult do_create(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && a && is_live())
		cw_graph_destroyed(*(void **)a);
	return r;
}

static CUresult do_instantiate(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && a && is_live())
		cw_graph_instantiated(*(void **)a, (void *)b, false);
	return r;
}

static CUresult do_instantiate_flags(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && a && is_live())
		cw_graph_instantiated(*(void **)a, (void *)b, c & INSTANTIATE_DEVICE_LAUNCH);
	return r;
}

static CUresult do_instantiate_params(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	/* The struct of parameters begins with the flags. */
	if (r == CUDA_SUCCESS && a && c && is_live())
		cw_graph_instantiated(*(void **)a, (void *)b,
				      *(const uint64_t *)c & INSTANTIATE_DEVICE_LAUNCH);
	return r;
}

static CUresult do_launch(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	struct cw_graph_launch launch;
	CUresult r;

	if (!is_live())
		return real(a, b, c, d, e, f);
	cw_tls.depth = 1;
	if (!cw_graph_launch_enter(&launch, (void *)a, (cudaStream_t)b)) {
		cw_tls.depth = 0;
		return real(a, b, c, d, e, f);
	}
	r = real(a, b, c, d, e, f);
	cw_graph_launch_leave(&launch, (cudaStream_t)b, r == CUDA_SUCCESS);
	cw_tls.depth = 0;
	return r;
}

static CUresult do_clone(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && a && is_live()) {
		/* As in do_create(), the driver may have reused the handle of a destroyed graph. */
		cw_graph_destroyed(*(void **)a);
		cw_graph_copied(*(void **)a, (void *)b);
	}
	return r;
}

/*
 * Handles the destruction of a graph. We forget the graph before the call: afterwards, another
 * thread's new graph may have the same handle.
 */
static CUresult do_destroy(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	if (is_live())
		cw_graph_destroyed((void *)a);
	return real(a, b, c, d, e, f);
}

static CUresult do_exec_destroy(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	if (is_live())
		cw_graph_exec_destroyed((void *)a);
	return real(a, b, c, d, e, f);
}

static CUresult do_exec_update(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && is_live())
		cw_graph_updated((void *)a, (void *)b);
	return r;
}

static CUresult do_add_child(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && is_live())
		cw_graph_copied((void *)b, (void *)e);
	return r;
}

static void node_added(reg graph, const char *params)
{
	int type;
	void *child;

	if (!params || !is_live())
		return;
	memcpy(&type, params, sizeof(type));
	if (type == NODE_CONDITIONAL)
		cw_graph_has_condition();
	if (type != NODE_CHILD_GRAPH)
		return;
	memcpy(&child, params + NODE_UNION_OFFSET, sizeof(child));
	cw_graph_copied((void *)graph, child);
}

static CUresult do_add_node(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS)
		node_added(b, (const char *)e);
	return r;
}

static CUresult do_add_node_edges(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS)
		node_added(b, (const char *)f);
	return r;
}

static CUresult do_exec_changed(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);

	if (r == CUDA_SUCCESS && is_live())
		cw_graph_exec_unknown((void *)a);
	return r;
}

/* ---- symbol look-ups ---- */

static bool is_asked_for(const struct hook *h, const char *name, int version, uint64_t flags)
{
	int ptsz = (flags & PER_THREAD_DEFAULT_STREAM) != 0;

	/*
	 * The caller may also pass the symbol of one version, for example
	 * cuGraphInstantiateWithFlags.
	 */
	if (strcmp(h->name, name) != 0)
		return strcmp(h->symbol, name) == 0;
	return version >= h->since && version < h->until && (h->ptsz < 0 || h->ptsz == ptsz);
}

static CUresult do_proc_address(real_fn real, reg a, reg b, reg c, reg d, reg e, reg f)
{
	CUresult r = real(a, b, c, d, e, f);
	void **found = (void **)b;

	if (r != CUDA_SUCCESS || !a || !found || !*found || cw_agent_is_disabled() ||
	    strncmp((const char *)a, "cu", 2) != 0)
		return r;
	for (unsigned i = 0; i < HOOK__MAX; i++) {
		if (is_asked_for(&hooks[i], (const char *)a, (int)c, d)) {
			*found = replace(i, *found);
			break;
		}
	}
	return r;
}

void *cw_cuda_symbol(cw_dlsym_fn next, void *handle, const char *name)
{
	void *found;

	for (unsigned i = 0; i < HOOK__MAX; i++) {
		if (strcmp(hooks[i].symbol, name) != 0)
			continue;
		/*
		 * With RTLD_NEXT the caller is a wrapper of another library. It must get the
		 * function that follows its own library.
		 */
		if (handle == RTLD_NEXT)
			return NULL;
		if (handle == RTLD_DEFAULT)
			return real_of(i) ? NULL : CW_ABSENT;
		found = next(handle, name);
		if (!found || cw_agent_is_disabled())
			return NULL;
		/* The scope of the handle contains our wrapper, but no driver. */
		if (found == wrapper_of(i) && !real_of(i))
			return CW_ABSENT;
		/*
		 * We may call pin() here, because dlsym takes the loader's lock anyway.
		 * cuGetProcAddress does not take it, so do_proc_address() never calls pin().
		 */
		if (!__atomic_load_n(&reals[i], __ATOMIC_ACQUIRE))
			pin(found);
		return replace(i, found);
	}
	return NULL;
}

/* ---- entry points ---- */

#define X(symbol, name, since, until, ptsz, how)                                                   \
	CW_EXPORT CUresult symbol(reg a, reg b, reg c, reg d, reg e, reg f);                       \
	CW_EXPORT CUresult symbol(reg a, reg b, reg c, reg d, reg e, reg f)                        \
	{                                                                                          \
		real_fn real = real_of(HOOK_##symbol);                                             \
                                                                                                   \
		return real ? do_##how(real, a, b, c, d, e, f) : CUDA_ERROR_NOT_SUPPORTED;         \
	}
CW_CUDA_HOOKS(X)
#undef X

static void *wrapper_of(unsigned hook)
{
	static void *const wrappers[HOOK__MAX] = {
#define X(symbol, name, since, until, ptsz, how) (void *)symbol,
		CW_CUDA_HOOKS(X)
#undef X
	};

	return wrappers[hook];
}
