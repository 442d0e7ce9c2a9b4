/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's kernel, after src/device/common.h: each block takes the next channel in the mask, walks
 * the channel's batches of work and executes them. All kernels are this one: a batch selects its
 * work by function number, not by the kernel's name.
 */
#include "lab/nccl/device/fault.h"
#include "lab/nccl/device/kernels.h"
#include "lab/nccl/device/work.h"
#include "lab/sim/cuda/host_image.h"

#include "lab/nccl/device/registration.h"

#include <cstring>
#include <ctime>

namespace lab
{

namespace
{

struct Batch {
	ncclDevWorkType type;
	unsigned int function;
	size_t size; /* size of one work item */
	std::vector<char> storage;
	int next; /* -1: the last one */

	size_t count() const
	{
		return storage.size() / size;
	}
	template <typename T> T *at(size_t i)
	{
		return (T *)(storage.data() + i * size);
	}
};

void append_works(const ncclDevKernelArgs *args, const ncclDevWorkBatch &b, size_t size,
		  std::vector<char> &storage)
{
	for (unsigned int i = 0; i < 64; i++) {
		size_t offset = b.offsetBase + i * size;
		size_t old = storage.size();

		if (!(b.offsetBitset >> i & 1))
			continue;
		storage.resize(old + size);
		/* the FIFO may wrap after any 16 bytes */
		for (size_t at = 0; at < size; at += 16) {
			const char *src = args->workStorageType == ncclDevWorkStorageTypeArgs
						  ? (const char *)args + offset + at
						  : (const char *)args->workBuf +
							    ((offset + at) & args->workMask);

			memcpy(&storage[old + at], src, 16);
		}
	}
}

Batch load_batch(const ncclDevKernelArgs *args, int index)
{
	const ncclDevWorkBatch *batches = (const ncclDevWorkBatch *)(args + 1);
	Batch ret = {};

	for (;; index += batches[index].nextJump) {
		const ncclDevWorkBatch &b = batches[index];

		ret.size = ncclDevWorkSize((ncclDevWorkType)b.workType);
		append_works(args, b, ret.size, ret.storage);
		if (b.nextExtends)
			continue;
		ret.type = (ncclDevWorkType)b.workType;
		ret.function = b.funcId;
		ret.next = b.nextJump ? index + (int)b.nextJump : -1;
		return ret;
	}
}

/* The device's clock counts nanoseconds since 1970. */
uint64_t device_time()
{
	timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool is_profiled(Batch &batch, size_t i)
{
	if (batch.type == ncclDevWorkTypeP2p)
		return batch.at<ncclDevWorkP2p>(i)->profilerEnabled;
	return batch.type != ncclDevWorkTypeBcast && batch.at<ncclDevWorkColl>(i)->profilerEnabled;
}

/* Updates the counters that a proxy thread reads for the profiler. */
void note(ncclDevProfiler *counters, Block &b, Batch &batch)
{
	for (size_t i = 0; i < batch.count(); i++) {
		uint64_t n = b.channel->workCounter + 1 + i;
		auto &slot = counters[b.channel_id].data[n % MAX_PROFILER_EVENTS_PER_CHANNEL];

		if (!is_profiled(batch, i))
			continue;
		slot.timestamp = device_time();
		__atomic_store_n(&slot.counter, n, __ATOMIC_RELEASE);
	}
}

template <typename T> std::vector<T> works_of(Batch &batch)
{
	T *first = batch.at<T>(0);

	return std::vector<T>(first, first + batch.count());
}

void run_batch(Block &b, Batch &batch)
{
	Function f = function_of(batch.function);

	if (batch.type == ncclDevWorkTypeP2p) {
		std::vector<ncclDevWorkP2p> works = works_of<ncclDevWorkP2p>(batch);

		run_p2p(b, works);
	} else if (batch.type == ncclDevWorkTypeBcast) {
		std::vector<ncclDevWorkBcast> works = works_of<ncclDevWorkBcast>(batch);

		run_broadcasts(b, f, works);
	} else {
		for (size_t i = 0; i < batch.count() && !b.is_aborted; i++)
			run_collective(b, f, batch.at<ncclDevWorkColl>(i));
	}
}

int channel_of_block(uint64_t mask, unsigned int block)
{
	for (int c = 0; c < MAXCHANNELS; c++) {
		if ((mask >> c & 1) && block-- == 0)
			return c;
	}
	die("the mask 0x%llx has fewer channels than the launch has blocks",
	    (unsigned long long)mask);
}

void run_kernel(const void *param, unsigned int block, unsigned int blocks)
{
	const ncclDevKernelArgs *args = (const ncclDevKernelArgs *)param;
	ncclKernelCommAndChannels *whole = (ncclKernelCommAndChannels *)args->comm;
	Block b = { args, &whole->comm, nullptr, channel_of_block(args->channelMask, block),
		    false };

	b.channel = &whole->channels[b.channel_id];
	fault_before_kernel(b);
	for (int index = (int)block; index >= 0 && !b.is_aborted;) {
		Batch batch = load_batch(args, index);

		note(b.comm->workStarted, b, batch);
		run_batch(b, batch);
		note(b.comm->workCompleted, b, batch);
		b.channel->workCounter += batch.count();
		index = batch.next;
	}
}

/* A constructor registers the kernels, as in the output of nvcc. */
struct Registration {
	std::vector<sim_host_kernel> kernels;
	sim_host_image image;
	FatbinWrapper wrapper;

	Registration()
	{
		void **handle;

		for (unsigned int i = 0; i < lab_kernel_count; i++)
			kernels.push_back({ lab_kernel_names[i].name, sizeof(ncclDevKernelArgs4K),
					    run_kernel });
		kernels.push_back(one_rank_kernel());
		image = { SIM_HOST_IMAGE_MAGIC, (uint32_t)kernels.size(), kernels.data() };
		wrapper = { FATBIN_WRAPPER_MAGIC, 1, &image, nullptr };
		handle = __cudaRegisterFatBinary(&wrapper);
		for (unsigned int i = 0; i < lab_kernel_count; i++)
			register_function(handle, lab_kernel_names[i].symbol,
					  lab_kernel_names[i].name);
		register_function(handle, one_rank_symbol(), kernels.back().name);
		__cudaRegisterFatBinaryEnd(handle);
	}
};

/* Lives as long as the process: the registered pointers point into it. */
__attribute__((constructor)) void register_kernels()
{
	new Registration;
}

} // namespace

} // namespace lab
