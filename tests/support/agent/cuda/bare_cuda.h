/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver to make copies of. It has no data: with AddressSanitizer the same global variable in two
 * loaded files is an error. And it is not called libcuda.so, as the one that programs are linked
 * with.
 */
#pragma once

/* Where it was loaded from. */
const char *bare_cuda_path(void);
