/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA driver that tests copy. It has no data: AddressSanitizer reports the same global variable
 * in two loaded files as an error. Its name is not libcuda.so, because programs link to that name.
 */
#pragma once

/* Returns the path from which this library was loaded. */
const char *bare_cuda_path(void);
