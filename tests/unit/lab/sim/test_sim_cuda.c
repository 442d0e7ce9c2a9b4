/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u

static CUcontext ctx;

static void setup(void)
{
	cr_assert_eq(cuInit(0), CUDA_SUCCESS);
	cr_assert_eq(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
	cr_assert_eq(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
}

TestSuite(sim_cuda, .init = setup);

static CUstream new_stream(unsigned int flags)
{
	CUstream s = NULL;

	cr_assert_eq(cuStreamCreate(&s, flags), CUDA_SUCCESS);
	return s;
}

static CUdeviceptr new_words(size_t n)
{
	CUdeviceptr p = 0;

	cr_assert_eq(cuMemAlloc(&p, n * 4), CUDA_SUCCESS);
	cr_assert_eq(cuMemsetD32(p, 0, n), CUDA_SUCCESS);
	return p;
}

static uint32_t word_at(CUdeviceptr p)
{
	return __atomic_load_n((uint32_t *)(uintptr_t)p, __ATOMIC_ACQUIRE);
}

/* A host function that holds its stream until the test lets go. */
struct gate {
	sem_t entered;
	sem_t open;
};

static void pass_gate(void *arg)
{
	struct gate *g = arg;

	sem_post(&g->entered);
	sem_wait(&g->open);
}

static void gate_init(struct gate *g)
{
	sem_init(&g->entered, 0, 0);
	sem_init(&g->open, 0, 0);
}

Test(sim_cuda, runs_a_stream_in_order)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(2);
	struct gate g;

	gate_init(&g);
	cr_assert_eq(cuStreamWriteValue32(s, p, 1, 0), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(s, pass_gate, &g), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(s, p + 4, 2, 0), CUDA_SUCCESS);
	sem_wait(&g.entered);
	cr_expect_eq(word_at(p), 1);
	cr_expect_eq(word_at(p + 4), 0);
	cr_expect_eq(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	sem_post(&g.open);
	cr_expect_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
	cr_expect_eq(word_at(p + 4), 2);
	cr_expect_eq(cuStreamQuery(s), CUDA_SUCCESS);
}

Test(sim_cuda, blocks_only_the_stream_that_is_blocked)
{
	CUstream blocked = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(1);
	struct gate g;

	gate_init(&g);
	cr_assert_eq(cuLaunchHostFunc(blocked, pass_gate, &g), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(other, p, 7, 0), CUDA_SUCCESS);
	cr_expect_eq(cuStreamSynchronize(other), CUDA_SUCCESS);
	cr_expect_eq(word_at(p), 7);
	sem_post(&g.open);
	cr_expect_eq(cuCtxSynchronize(), CUDA_SUCCESS);
	cr_expect_eq(cuStreamQuery(blocked), CUDA_SUCCESS);
}

Test(sim_cuda, orders_the_default_stream_after_blocking_streams)
{
	CUstream blocking = new_stream(CU_STREAM_DEFAULT);
	CUdeviceptr p = new_words(2);
	CUevent event;
	struct gate g;

	gate_init(&g);
	cr_assert_eq(cuEventCreate(&event, 0), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(blocking, pass_gate, &g), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(NULL, p, 1, 0), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(event, NULL), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(blocking, p + 4, 1, 0), CUDA_SUCCESS);
	sem_wait(&g.entered);
	cr_expect_eq(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	cr_expect_eq(word_at(p), 0);
	sem_post(&g.open);
	/* Later work on the blocking stream waits for the default stream in turn. */
	cr_expect_eq(cuStreamSynchronize(blocking), CUDA_SUCCESS);
	cr_expect_eq(word_at(p), 1);
	cr_expect_eq(word_at(p + 4), 1);
}

Test(sim_cuda, lets_the_default_stream_pass_non_blocking_streams)
{
	CUstream free_running = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(1);
	CUevent event;
	struct gate g;

	gate_init(&g);
	cr_assert_eq(cuEventCreate(&event, 0), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(free_running, pass_gate, &g), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(NULL, p, 1, 0), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(event, NULL), CUDA_SUCCESS);
	cr_expect_eq(cuEventSynchronize(event), CUDA_SUCCESS);
	cr_expect_eq(word_at(p), 1);
	sem_post(&g.open);
	cr_expect_eq(cuStreamSynchronize(free_running), CUDA_SUCCESS);
}

Test(sim_cuda, takes_every_handle_of_the_default_streams)
{
	const CUstream handles[] = { NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD };
	CUdeviceptr p = new_words(1);

	for (uint32_t i = 0; i < 3; i++) {
		CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
		CUcontext c = NULL;

		cr_assert_eq(cuStreamWriteValue32(handles[i], p, i + 1, 0), CUDA_SUCCESS);
		cr_assert_eq(cuStreamSynchronize(handles[i]), CUDA_SUCCESS);
		cr_expect_eq(word_at(p), i + 1);
		cr_expect_eq(cuStreamGetCtx(handles[i], &c), CUDA_SUCCESS);
		cr_expect_eq(c, ctx);
		cr_expect_eq(cuStreamIsCapturing(handles[i], &status), CUDA_SUCCESS);
		cr_expect_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
	}
	cr_expect_eq(cuStreamSynchronize((CUstream)&p), CUDA_ERROR_INVALID_HANDLE);
}

Test(sim_cuda, refuses_value_writes_outside_the_streams_context)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(1);
	CUcontext other, popped;

	cr_assert_eq(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
	cr_assert_eq(cuCtxPushCurrent(other), CUDA_SUCCESS);
	cr_expect_eq(cuStreamWriteValue32(s, p, 1, 0), CUDA_ERROR_INVALID_HANDLE);
	cr_assert_eq(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
	cr_expect_eq(popped, other);
	cr_assert_eq(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	cr_expect_eq(cuStreamWriteValue32(s, p, 1, 0), CUDA_ERROR_INVALID_CONTEXT);
	cr_expect_eq(cuStreamWriteValue32(NULL, p, 1, 0), CUDA_ERROR_INVALID_CONTEXT);
	cr_assert_eq(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
	cr_expect_eq(cuStreamWriteValue32(s, p, 1, 0), CUDA_SUCCESS);
}

Test(sim_cuda, writes_only_to_memory_the_device_knows)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(1);
	uint32_t local = 0;

	cr_expect_eq(cuStreamWriteValue32(s, (CUdeviceptr)(uintptr_t)&local, 1, 0),
		     CUDA_ERROR_INVALID_VALUE);
	cr_expect_eq(cuStreamWriteValue32(s, p + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	cr_expect_eq(cuStreamWriteValue32(s, p, 1, 0x80), CUDA_ERROR_INVALID_VALUE);
	cr_expect_eq(cuStreamWriteValue32(s, p, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER),
		     CUDA_SUCCESS);
}

Test(sim_cuda, registers_whole_host_pages_once)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
	char *pages =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr p;

	cr_assert_neq(pages, MAP_FAILED);
	cr_expect_eq(cuMemHostRegister(pages + 8, PAGE, flags), CUDA_ERROR_INVALID_VALUE);
	cr_expect_eq(cuMemHostRegister(pages, PAGE + 8, flags), CUDA_ERROR_INVALID_VALUE);
	cr_expect_eq(cuMemHostGetDevicePointer(&p, pages, 0), CUDA_ERROR_INVALID_VALUE);
	cr_assert_eq(cuMemHostRegister(pages, 2 * PAGE, flags), CUDA_SUCCESS);
	cr_expect_eq(cuMemHostRegister(pages, 2 * PAGE, flags),
		     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	cr_expect_eq(cuMemHostRegister(pages + PAGE, 2 * PAGE, flags),
		     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	cr_assert_eq(cuMemHostGetDevicePointer(&p, pages + 16, 0), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(s, p, 42, 0), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
	cr_expect_eq(*(uint32_t *)(pages + 16), 42);
	cr_expect_eq(cuMemHostUnregister(pages), CUDA_SUCCESS);
	cr_expect_eq(cuMemHostUnregister(pages), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	cr_expect_eq(cuStreamWriteValue32(s, p, 43, 0), CUDA_ERROR_INVALID_VALUE);
	munmap(pages, 4 * PAGE);
	cr_expect_eq(cuMemHostRegister(pages, PAGE, flags), CUDA_ERROR_INVALID_VALUE);
}

Test(sim_cuda, makes_a_stream_wait_for_an_event)
{
	CUstream first = new_stream(CU_STREAM_NON_BLOCKING);
	CUstream second = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(1);
	CUevent event, later;
	struct gate g;
	float ms = -1;

	gate_init(&g);
	cr_assert_eq(cuEventCreate(&event, 0), CUDA_SUCCESS);
	cr_assert_eq(cuEventCreate(&later, 0), CUDA_SUCCESS);
	cr_expect_eq(cuEventQuery(event), CUDA_SUCCESS, "not recorded is complete");
	cr_assert_eq(cuLaunchHostFunc(first, pass_gate, &g), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(event, first), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(second, p, 1, 0), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(later, second), CUDA_SUCCESS);
	sem_wait(&g.entered);
	cr_expect_eq(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	cr_expect_eq(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	cr_expect_eq(word_at(p), 0);
	sem_post(&g.open);
	cr_expect_eq(cuEventSynchronize(later), CUDA_SUCCESS);
	cr_expect_eq(word_at(p), 1);
	cr_expect_eq(cuEventElapsedTime(&ms, event, later), CUDA_SUCCESS);
	cr_expect_geq(ms, 0);
	cr_expect_eq(cuEventDestroy(event), CUDA_SUCCESS);
	cr_expect_eq(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

Test(sim_cuda, finishes_a_destroyed_streams_work)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_words(1);
	CUevent event;
	struct gate g;

	gate_init(&g);
	cr_assert_eq(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	cr_assert_eq(cuLaunchHostFunc(s, pass_gate, &g), CUDA_SUCCESS);
	cr_assert_eq(cuStreamWriteValue32(s, p, 5, 0), CUDA_SUCCESS);
	cr_assert_eq(cuEventRecord(event, s), CUDA_SUCCESS);
	cr_assert_eq(cuStreamDestroy(s), CUDA_SUCCESS);
	cr_expect_eq(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
	sem_post(&g.open);
	cr_expect_eq(cuEventSynchronize(event), CUDA_SUCCESS);
	cr_expect_eq(word_at(p), 5);
}

struct host_fn_view {
	sigset_t blocked;
	CUresult from_inside;
};

static void look_around(void *arg)
{
	struct host_fn_view *v = arg;
	CUcontext c;

	pthread_sigmask(SIG_SETMASK, NULL, &v->blocked);
	v->from_inside = cuCtxGetCurrent(&c);
}

Test(sim_cuda, runs_host_functions_without_signals_and_driver)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	struct host_fn_view v;

	sigemptyset(&v.blocked);
	cr_assert_eq(cuLaunchHostFunc(s, look_around, &v), CUDA_SUCCESS);
	cr_assert_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
	cr_expect_eq(sigismember(&v.blocked, SIGTERM), 1);
	cr_expect_eq(sigismember(&v.blocked, SIGUSR1), 1);
	cr_expect_eq(v.from_inside, CUDA_ERROR_NOT_PERMITTED);
}

Test(sim_cuda, copies_through_the_device)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	char in[] = "some bytes", out[sizeof(in)] = "";
	CUdeviceptr a, b, base;
	size_t size;

	cr_assert_eq(cuMemAlloc(&a, 64), CUDA_SUCCESS);
	cr_assert_eq(cuMemAlloc(&b, 64), CUDA_SUCCESS);
	cr_expect_eq(cuMemcpyHtoDAsync(a, in, sizeof(in), s), CUDA_SUCCESS);
	cr_expect_eq(cuMemcpyDtoDAsync(b, a, sizeof(in), s), CUDA_SUCCESS);
	cr_expect_eq(cuMemcpyDtoHAsync(out, b, sizeof(in), s), CUDA_SUCCESS);
	cr_expect_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
	cr_expect_str_eq(out, in);
	cr_expect_eq(cuMemcpyHtoD(a, in, 65), CUDA_ERROR_INVALID_VALUE);
	cr_expect_eq(cuMemGetAddressRange(&base, &size, a + 5), CUDA_SUCCESS);
	cr_expect_eq(base, a);
	cr_expect_eq(size, 64);
	cr_expect_eq(cuMemFree(a), CUDA_SUCCESS);
	cr_expect_eq(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
}

/* ---- asynchronous copies of pageable memory ---- */

#define LARGE (65536u + 4)

struct watched {
	struct gate gate;
	pid_t tid;     /* of the thread that copies */
	bool returned; /* atomic: its call */
};

static bool is_asleep(pid_t tid)
{
	char path[64], text[256] = "";
	const char *state;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	(void)!fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	state = strrchr(text, ')');
	return state && state[1] && state[2] == 'S';
}

/* Opens the gate when the copy waits behind it, or has come back without. */
static void *open_when_waited_for(void *arg)
{
	struct watched *w = arg;

	while (!__atomic_load_n(&w->returned, __ATOMIC_ACQUIRE) && !is_asleep(w->tid))
		sched_yield();
	if (!w->returned)
		sem_post(&w->gate.open);
	return NULL;
}

/* The stream stands in front of the copy while the call is made; true when the call waited. */
static bool waits(CUstream s, CUdeviceptr dev, void *host, size_t size, bool is_download)
{
	struct watched w = { .tid = gettid() };
	pthread_t opener;
	int is_open;

	sem_init(&w.gate.entered, 0, 0);
	sem_init(&w.gate.open, 0, 0);
	cr_assert_eq(cuLaunchHostFunc(s, pass_gate, &w.gate), CUDA_SUCCESS);
	sem_wait(&w.gate.entered);
	cr_assert_eq(pthread_create(&opener, NULL, open_when_waited_for, &w), 0);
	if (is_download)
		cr_expect_eq(cuMemcpyDtoHAsync(host, dev, size, s), CUDA_SUCCESS);
	else
		cr_expect_eq(cuMemcpyHtoDAsync(dev, host, size, s), CUDA_SUCCESS);
	is_open = cuStreamQuery(s) == CUDA_SUCCESS;
	__atomic_store_n(&w.returned, true, __ATOMIC_RELEASE);
	pthread_join(opener, NULL);
	sem_post(&w.gate.open);
	cr_expect_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
	return is_open;
}

Test(sim_cuda, pageable_copy_to_the_host_returns_when_all_is_there, .timeout = 300)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t *pinned, pageable = 1;
	CUdeviceptr dev = new_words(1);

	cr_assert_eq(cuMemAllocHost((void **)&pinned, sizeof(*pinned)), CUDA_SUCCESS);
	cr_expect(waits(s, dev, &pageable, sizeof(pageable), true));
	cr_expect_eq(pageable, 0);
	cr_expect_not(waits(s, dev, pinned, sizeof(*pinned), true));
}

Test(sim_cuda, pageable_copy_to_the_device_is_staged, .timeout = 300)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	uint32_t pageable = 5, *pinned, back = 0;
	CUdeviceptr dev = new_words(1);
	struct gate g;

	cr_assert_eq(cuMemAllocHost((void **)&pinned, sizeof(*pinned)), CUDA_SUCCESS);
	sem_init(&g.entered, 0, 0);
	sem_init(&g.open, 0, 0);
	cr_assert_eq(cuLaunchHostFunc(s, pass_gate, &g), CUDA_SUCCESS);
	cr_expect_eq(cuMemcpyHtoDAsync(dev, &pageable, sizeof(pageable), s), CUDA_SUCCESS);
	pageable = 6;
	sem_post(&g.open);
	cr_expect_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
	cr_expect_eq(word_at(dev), 5u, "as it was at the call");
	cr_assert_eq(cuLaunchHostFunc(s, pass_gate, &g), CUDA_SUCCESS);
	*pinned = 7;
	cr_expect_eq(cuMemcpyHtoDAsync(dev, pinned, sizeof(*pinned), s), CUDA_SUCCESS);
	*pinned = 8;
	sem_post(&g.open);
	cr_expect_eq(cuMemcpyDtoHAsync(&back, dev, sizeof(back), s), CUDA_SUCCESS);
	cr_expect_eq(back, 8u, "the device reads pinned memory when it gets there");
}

Test(sim_cuda, large_pageable_copy_to_the_device_waits_for_the_stream, .timeout = 300)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr dev = new_words(LARGE / 4);
	char *pageable = calloc(1, LARGE);

	cr_expect(waits(s, dev, pageable, LARGE, false));
	cr_expect_not(waits(s, dev, pageable, LARGE - 4, false));
	free(pageable);
}

Test(sim_cuda, captured_copy_of_pageable_memory_waits_for_nothing)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr dev = new_words(1);
	uint32_t pageable = 3;
	CUgraph graph;

	cr_assert_eq(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	cr_expect_eq(cuMemcpyDtoHAsync(&pageable, dev, sizeof(pageable), s), CUDA_SUCCESS);
	cr_expect_eq(cuStreamEndCapture(s, &graph), CUDA_SUCCESS);
	cr_expect_eq(pageable, 3u);
}

Test(sim_cuda, exchanges_the_capture_mode)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	cr_expect_eq(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
	cr_expect_eq(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	cr_expect_eq(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
	cr_expect_eq(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
}

Test(sim_cuda, finds_functions_by_name_and_version)
{
	CUdriverProcAddressQueryResult status;
	void *fn;

	cr_expect_eq(cuGetProcAddress("cuStreamWriteValue32", &fn, CUDA_VERSION, 0, &status),
		     CUDA_SUCCESS);
	cr_expect_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
	cr_expect_eq(fn, (void *)cuStreamWriteValue32);
	cr_expect_eq(cuGetProcAddress("cuCtxCreate", &fn, 12000, 0, &status), CUDA_SUCCESS);
	cr_expect_eq(fn, (void *)cuCtxCreate_v2);
	cr_expect_eq(cuGetProcAddress("cuCtxCreate", &fn, 13000, 0, &status), CUDA_SUCCESS);
	cr_expect_eq(fn, (void *)cuCtxCreate);
	cr_expect_eq(cuGetProcAddress("cuLaunchHostFunc", &fn, 9000, 0, &status), CUDA_SUCCESS);
	cr_expect_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	cr_expect_eq(cuGetProcAddress("cuNoSuchThing", &fn, CUDA_VERSION, 0, &status),
		     CUDA_SUCCESS);
	cr_expect_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	cr_expect_null(fn);
	cr_expect_eq(cuGetProcAddress("cuNoSuchThing", &fn, CUDA_VERSION, 0, NULL),
		     CUDA_ERROR_NOT_FOUND);
}

Test(sim_cuda, leaves_a_forked_child_alive_but_without_driver)
{
	CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
	struct gate g;
	int status;
	pid_t pid;

	gate_init(&g);
	cr_assert_eq(cuLaunchHostFunc(s, pass_gate, &g), CUDA_SUCCESS);
	sem_wait(&g.entered); /* the child is forked while a worker is busy */
	pid = fork();
	if (pid == 0) {
		CUcontext c;

		_exit(cuStreamSynchronize(s) == CUDA_ERROR_NOT_INITIALIZED &&
				      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
				      cuCtxGetCurrent(&c) == CUDA_ERROR_NOT_INITIALIZED
			      ? 0
			      : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	sem_post(&g.open);
	cr_expect_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
}

Test(sim_cuda_start, devices_are_of_the_model_that_is_asked_for)
{
	char name[64], cut[8];

	cr_assert_eq(cuInit(0), CUDA_SUCCESS);
	cr_expect_eq(cuDeviceGetName(name, sizeof(name), 0), CUDA_SUCCESS);
	cr_expect_str_eq(name, "Simulated device");
	setenv("SIM_CUDA_MODEL", "Other device", 1);
	cr_expect_eq(cuDeviceGetName(cut, sizeof(cut), 0), CUDA_SUCCESS);
	cr_expect_str_eq(cut, "Other d");
}

Test(sim_cuda_start, needs_init_and_counts_devices)
{
	CUdevice dev;
	int count, active;
	unsigned int flags;

	cr_expect_eq(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	setenv("SIM_CUDA_DEVICES", "3", 1);
	cr_assert_eq(cuInit(0), CUDA_SUCCESS);
	cr_expect_eq(cuDeviceGetCount(&count), CUDA_SUCCESS);
	cr_expect_eq(count, 3);
	cr_expect_eq(cuDeviceGet(&dev, 2), CUDA_SUCCESS);
	cr_expect_eq(cuDeviceGet(&dev, 3), CUDA_ERROR_INVALID_DEVICE);
	cr_expect_eq(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
	cr_expect_eq(active, 0);
	cr_assert_eq(cuDevicePrimaryCtxRetain(&ctx, 1), CUDA_SUCCESS);
	cr_expect_eq(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
	cr_expect_eq(active, 1);
	cr_expect_eq(cuCtxGetDevice(&dev), CUDA_ERROR_INVALID_CONTEXT);
	cr_assert_eq(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
	cr_expect_eq(cuCtxGetDevice(&dev), CUDA_SUCCESS);
	cr_expect_eq(dev, 1);
	cr_expect_eq(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
	cr_expect_eq(cuCtxGetDevice(&dev), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}
