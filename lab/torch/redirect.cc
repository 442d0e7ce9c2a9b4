/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic of PyTorch's CUDA tensors, by PyTorch's own CPU kernels. We have no GPU to run its
 * CUDA kernels, but the simulated device's memory is ordinary memory: a tensor on it has an alias
 * on the CPU. This function replaces every ATen operator that has a CUDA kernel, at the dispatcher,
 * below autograd and in all of its threads. The function waits for the current stream, so that
 * earlier work in it (copies, NCCL) is complete. It then calls the same operator with the aliases,
 * and gives new results device memory.
 *
 * Operators that only allocate, inspect or view stay PyTorch's own, as do streams, events, the
 * allocator and all of c10d. An operator without a CPU kernel fails with PyTorch's usual message.
 */
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <cstring>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

namespace
{

/* Operators for allocation, storage and inspection; they launch nothing. */
const std::unordered_set<std::string> kept = {
	"empty",     "empty_strided",	    "resize_",	 "set_",      "record_stream",
	"is_pinned", "_pin_memory",	    "is_set_to", "view",      "as_strided",
	"unfold",    "_local_scalar_dense", "_has_same_storage_numel",
};

/* Operators with a single kernel for all devices, which inspects the device itself. */
const std::vector<std::string> added = { "copy_" };

struct Pair {
	at::Tensor host;
	at::Tensor device;
};

class Call
{
      public:
	/* Converts an argument into one for the CPU's kernel. */
	c10::IValue to_host(const c10::IValue &v, bool is_written)
	{
		if (v.isTensor())
			return alias(v.toTensor(), is_written);
		if (v.isDevice() && v.toDevice().is_cuda()) {
			see(v.toDevice());
			return c10::IValue(at::Device(at::kCPU));
		}
		if (v.isGenerator() && v.toGenerator().device().is_cuda())
			return c10::IValue();
		if (v.isTensorList()) {
			c10::List<at::Tensor> list;

			for (const at::Tensor &t : v.toTensorVector())
				list.push_back(alias(t, is_written));
			return list;
		}
		if (v.isOptionalTensorList()) {
			c10::List<std::optional<at::Tensor>> list;

			for (const std::optional<at::Tensor> &t : v.toOptionalTensorVector())
				list.push_back(t ? std::optional(alias(*t, is_written)) : t);
			return list;
		}
		return v;
	}

	c10::IValue to_device(const c10::IValue &v)
	{
		if (v.isTensor())
			return original(v.toTensor());
		if (v.isTensorList()) {
			c10::List<at::Tensor> list;

			for (const at::Tensor &t : v.toTensorVector())
				list.push_back(original(t));
			return list;
		}
		return v;
	}

	/* Waits for all earlier work in the stream. */
	void wait() const
	{
		if (!device.is_cuda())
			return;
		const c10::impl::VirtualGuardImpl guard(at::kCUDA);

		guard.synchronizeStream(guard.getStream(device));
	}

	/* An operator may resize an argument, and its memory then moves. */
	void take_sizes() const
	{
		for (const Pair &p : pairs) {
			if (p.host.sizes() == p.device.sizes() &&
			    p.host.const_data_ptr() == p.device.const_data_ptr())
				continue;
			p.device.resize_(p.host.sizes());
			over(p.device).copy_(p.host);
		}
	}

      private:
	void see(at::Device d)
	{
		if (!device.is_cuda())
			device = d.has_index() ?
					 d :
					 c10::impl::VirtualGuardImpl(at::kCUDA).getDevice();
	}

	/* The same memory as a CPU tensor. */
	static at::Tensor over(const at::Tensor &t)
	{
		at::Tensor host = at::from_blob(
			const_cast<void *>(t.const_data_ptr()), t.sizes(), t.strides(),
			[t](void *) {}, t.options().device(at::kCPU));

		if (t.unsafeGetTensorImpl()->is_wrapped_number())
			host.unsafeGetTensorImpl()->set_wrapped_number(true);
		return host;
	}

	at::Tensor alias(const at::Tensor &t, bool is_written)
	{
		if (!t.defined() || !t.is_cuda())
			return t;
		see(t.device());
		/* The operator will resize an empty result: it needs memory that can grow. */
		at::Tensor host = is_written && t.numel() == 0 ?
					  at::empty(t.sizes(), t.options().device(at::kCPU)) :
					  over(t);

		if (is_written)
			pairs.push_back({ host, t });
		return host;
	}

	at::Tensor original(const at::Tensor &t) const
	{
		if (!t.defined() || !t.is_cpu() || !device.is_cuda())
			return t;
		for (const Pair &p : pairs) {
			if (p.host.is_same(t))
				return p.device;
		}
		at::Tensor fresh =
			at::empty_strided(t.sizes(), t.strides(), t.options().device(device));

		over(fresh).copy_(t);
		return fresh;
	}

	at::Device device = at::kCPU;
	std::vector<Pair> pairs; /* outputs */
};

void on_host(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack)
{
	const at::AutoDispatchBelowADInplaceOrView guard;
	const c10::FunctionSchema &schema = op.schema();
	const size_t first = stack->size() - schema.arguments().size();
	Call call;

	for (size_t i = first; i < stack->size(); i++) {
		const c10::AliasInfo *info = schema.arguments()[i - first].alias_info();

		(*stack)[i] = call.to_host((*stack)[i], info && info->isWrite());
	}
	call.wait();
	op.callBoxed(stack);
	call.take_sizes();
	for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); i++)
		(*stack)[i] = call.to_device((*stack)[i]);
}

bool is_view(const c10::FunctionSchema &schema)
{
	for (const c10::Argument &a : schema.returns()) {
		if (a.alias_info() && !a.alias_info()->isWrite())
			return true;
	}
	return false;
}

class Quiet : public c10::WarningHandler
{
	void process(const c10::Warning &) override
	{
	}
};

class Registration
{
      public:
	Registration() : library(torch::Library::IMPL, "aten", at::DispatchKey::CUDA, __FILE__, 0)
	{
		Quiet quiet; /* suppresses warnings about the intended replacement of kernels */
		const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
		c10::Dispatcher &dispatcher = c10::Dispatcher::singleton();

		for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
			const auto op = dispatcher.findSchema(name);

			if (op && name.getNamespace() == std::string_view("aten") && is_ours(*op))
				library.impl(c10::toString(name).c_str(),
					     torch::CppFunction::makeFromBoxedFunction<&on_host>());
		}
	}

      private:
	static bool is_ours(const c10::OperatorHandle &op)
	{
		const std::string base = op.operator_name().name.substr(strlen("aten::"));

		if (kept.count(base) || is_view(op.schema()))
			return false;
		for (const std::string &a : added) {
			if (base == a)
				return true;
		}
		return op.hasKernelForDispatchKey(at::DispatchKey::CUDA) ||
		       op.hasKernelForDispatchKey(at::DispatchKey::CPU);
	}

	torch::Library library;
};

const Registration registration;

} // namespace
