/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that tests copy. It has no data: with AddressSanitizer the same global variable in two
 * loaded files is an error. Its name is not libcuda.so, because programs link to that one.
 */
#pragma once

/* Where it was loaded from. */
const char *bare_cuda_path(void);
