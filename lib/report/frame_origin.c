/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Below a package root (site-packages, a wheel that pex unpacked, an archive) the next part of the
 * path is the package. Without a package root (pip install --target, Bazel's runfiles, a tree built
 * in place) any part of the path may be the package. There we accept only distinctive names. We
 * accept torch only together with a part that it contains, because users have directories called
 * "datasets", "ray" and "torch" too.
 *
 * Names are written without quotes, because own_words.py takes string literals for words of ours.
 */
#include "report/frame_origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define N_OF(list) (sizeof(list) / sizeof((list)[0]))

/* clang-format off */
#define RUNTIME_PACKAGES(X) \
	X(torch) X(torchgen) X(functorch) X(torch_xla) X(nccl) X(pex)

#define DISTINCTIVE_PACKAGES(X) \
	X(aiobotocore) X(aiohttp) X(bitsandbytes) X(boto3) X(botocore) X(cloudpickle) \
	X(colossalai) X(cupy) X(cupy_backends) X(cupyx) X(debugpy) X(deepspeed) X(flash_attn) \
	X(fsspec) X(gcsfs) X(h5py) X(horovod) X(huggingface_hub) X(ipykernel) X(IPython) \
	X(jax) X(jaxlib) X(joblib) X(lightning_fabric) X(mlflow) X(mpi4py) X(numba) X(numpy) \
	X(omegaconf) X(optuna) X(pandas) X(pkg_resources) X(psutil) X(pyarrow) X(pydantic) \
	X(pytorch_lightning) X(s3fs) X(safetensors) X(scipy) X(setuptools) X(sklearn) \
	X(tensorboardX) X(tensordict) X(tensorflow) X(tokenizers) X(torch_geometric) \
	X(torchaudio) X(torchdata) X(torchmetrics) X(torchvision) X(tqdm) \
	X(transformer_engine) X(transformers) X(typing_extensions) X(urllib3) X(wandb) \
	X(webdataset) X(xformers) X(zarr)

/*
 * Packages that we accept only below a package root, because a user's own directory may have such a
 * name.
 */
#define INSTALLED_PACKAGES(X) \
	X(absl) X(accelerate) X(anyio) X(apex) X(attr) X(attrs) X(click) X(composer) X(cv2) \
	X(dask) X(datasets) X(decorator) X(dgl) X(dill) X(evaluate) X(fairscale) X(fire) \
	X(flax) X(google) X(grpc) X(httpx) X(hydra) X(ignite) X(keras) X(lightning) X(nvidia) \
	X(optax) X(peft) X(PIL) X(pip) X(ray) X(requests) X(streaming) X(tensorboard) X(timm) \
	X(tornado) X(traitlets) X(triton) X(typer) X(wrapt) X(yaml) X(zmq)

/*
 * Names that a directory of torch itself contains. Names that begin with an underscore also count.
 */
#define PARTS_OF_TORCH(X) \
	X(accelerator) X(amp) X(ao) X(autograd) X(backends) X(compiler) X(cuda) X(distributed) \
	X(distributions) X(export) X(fft) X(func) X(functional) X(futures) X(fx) X(hub) X(jit) \
	X(library) X(linalg) X(masked) X(monitor) X(mps) X(mtia) X(multiprocessing) X(nested) \
	X(nn) X(onnx) X(optim) X(overrides) X(package) X(profiler) X(quantization) X(random) \
	X(serialization) X(signal) X(sparse) X(special) X(storage) X(testing) X(utils) X(xpu)

/*
 * A repository often has the name of its package: "transformers/examples". These directories of a
 * repository contain no code of the package.
 */
#define PARTS_OF_REPOSITORY(X) \
	X(benchmarks) X(docs) X(examples) X(experiments) X(projects) X(recipes) X(scripts) \
	X(src) X(tests) X(tools) X(tutorials)
/* clang-format on */

#define QUOTED(name) #name,

static const char *const runtime_packages[] = { RUNTIME_PACKAGES(QUOTED) };
static const char *const distinctive_packages[] = { DISTINCTIVE_PACKAGES(QUOTED) };
static const char *const installed_packages[] = { INSTALLED_PACKAGES(QUOTED) };
static const char *const parts_of_torch[] = { PARTS_OF_TORCH(QUOTED) };
static const char *const parts_of_repository[] = { PARTS_OF_REPOSITORY(QUOTED) };

/* One part of a path. */
struct part {
	const char *text;
	size_t len;
};

/*
 * Returns the part of the path that begins at p and ends before the next slash. In a text such as
 * "/u/x.py:7 in f", the path ends at the colon.
 */
static struct part part_at(const char *p)
{
	return (struct part){ p, strcspn(p, "/:\n") };
}

static bool next_part(struct part *part)
{
	const char *end = part->text + part->len;

	if (*end != '/')
		return false;
	*part = part_at(end + 1);
	return true;
}

static bool is(struct part part, const char *text)
{
	return part.len == strlen(text) && strncmp(part.text, text, part.len) == 0;
}

static bool ends_in(struct part part, const char *ending)
{
	size_t n = strlen(ending);

	return part.len > n && strncmp(part.text + part.len - n, ending, n) == 0;
}

static bool is_among(struct part part, const char *const *names, size_t n)
{
	/* A module may be a single file such as "six.py". */
	if (ends_in(part, ".py"))
		part.len -= 3;
	else if (ends_in(part, ".pyc"))
		part.len -= 4;
	for (size_t i = 0; i < n; i++)
		if (is(part, names[i]))
			return true;
	return false;
}

/* True for "python3.11", for free-threaded builds such as "python3.13t", and for "pypy3.10". */
static bool is_versioned_python(struct part part)
{
	size_t at = part.len > 7 && strncmp(part.text, "python3", 7) == 0 ? 7
		    : part.len > 5 && strncmp(part.text, "pypy3", 5) == 0 ? 5
									  : 0;

	if (!at || part.text[at] != '.')
		return false;
	at++;
	while (at < part.len && part.text[at] >= '0' && part.text[at] <= '9')
		at++;
	return at == part.len || (at + 1 == part.len && part.text[at] == 't');
}

static bool is_package_root(struct part part)
{
	static const char *const names[] = { "site-packages", "dist-packages", "link-tree",
					     ".bootstrap" /* pex */ };
	static const char *const endings[] = { ".whl", ".egg", ".zip",      ".pex",
					       ".par", ".pyz", "#link-tree" };

	for (size_t i = 0; i < N_OF(names); i++)
		if (is(part, names[i]))
			return true;
	for (size_t i = 0; i < N_OF(endings); i++)
		if (ends_in(part, endings[i]))
			return true;
	return false;
}

/*
 * True for our hooks. Our package also contains the demo's programs, which count as the user's own
 * code.
 */
static bool is_own_hook(struct part part)
{
	return is(part, "collwatch") && next_part(&part) &&
	       (is(part, "torch") || is(part, "__init__.py") || is(part, "__main__.py"));
}

/* Classifies a part of a path with no package root before it. */
static enum frame_origin anywhere(struct part part)
{
	struct part inside = part;

	if (strncmp(part.text, "torchinductor_", 14) == 0 || is_own_hook(part))
		return FRAME_RUNTIME;
	if (!next_part(&inside))
		return FRAME_OWN;
	if (is(part, "torch") &&
	    (*inside.text == '_' || is_among(inside, parts_of_torch, N_OF(parts_of_torch))))
		return FRAME_RUNTIME;
	return is_among(part, distinctive_packages, N_OF(distinctive_packages)) &&
			       !is_among(inside, parts_of_repository, N_OF(parts_of_repository))
		       ? FRAME_LIBRARY
		       : FRAME_OWN;
}

/* Classifies generated code, which lies in no file. */
static enum frame_origin made(const char *file)
{
	static const struct {
		const char *prefix;
		enum frame_origin origin;
	} known[] = {
		{ "<frozen ", FRAME_RUNTIME },
		{ "<eval_with_key>", FRAME_RUNTIME }, /* torch.fx */
		{ "<__array_function__", FRAME_LIBRARY },
		{ "<attrs generated", FRAME_LIBRARY },
		{ "<decorator-gen", FRAME_LIBRARY },
	};

	for (size_t i = 0; i < N_OF(known); i++)
		if (strncmp(file, known[i].prefix, strlen(known[i].prefix)) == 0)
			return known[i].origin;
	return FRAME_OWN;
}

enum frame_origin frame_origin(const char *file)
{
	struct part part = part_at(file), before = { "", 0 }, package = { "", 0 };
	enum frame_origin origin = FRAME_OWN, found;
	bool is_stdlib = false;

	if (*file == '<')
		return made(file);
	do {
		struct part next = part;

		if (is_package_root(part) && next_part(&next)) {
			package = next;
			is_stdlib = part.len > 7 && strncmp(part.text, "python3", 7) == 0 &&
				    ends_in(part, ".zip"); /* "python311.zip" */
		} else if (is_versioned_python(part) &&
			   (is(before, "lib") || is(before, "lib64"))) {
			is_stdlib = true;
			package.len = 0;
		}
		found = anywhere(part);
		if (found > origin)
			origin = found;
		before = part;
	} while (next_part(&part));
	if (is_stdlib)
		return FRAME_RUNTIME;
	if (!package.len)
		return origin;
	if (is_own_hook(package) || is_among(package, runtime_packages, N_OF(runtime_packages)))
		return FRAME_RUNTIME;
	return is_among(package, distinctive_packages, N_OF(distinctive_packages)) ||
			       is_among(package, installed_packages, N_OF(installed_packages))
		       ? FRAME_LIBRARY
		       : FRAME_OWN;
}
