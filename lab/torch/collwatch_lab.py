# SPDX-License-Identifier: Apache-2.0
"""
What torch loads at the end of its own import (its entry point "torch.backends"): the redirection of
arithmetic, and no library that is not there.
"""

import os


def load():
    import torch
    torch.ops.load_library(os.environ['COLLWATCH_LAB_REDIRECT'])
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
