# SPDX-License-Identifier: Apache-2.0
"""
The module that torch loads at the end of its own import (its entry point "torch.backends").
It redirects arithmetic, and loads no missing library.
"""

import os


def load():
    import torch
    torch.ops.load_library(os.environ['COLLWATCH_LAB_REDIRECT'])
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
