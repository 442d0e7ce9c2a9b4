# SPDX-License-Identifier: Apache-2.0
"""Numbers of tensors that have been looked at in this step and not been written since.

What comes out of one operator goes into others, and back in backward: most tensors would be looked at three
times. A tensor is known again by its storage, its place in that, its elements in any order of dimensions, and
torch's count of writes. The weak reference keeps a storage's address from being given to another one.
"""

from torch.multiprocessing.reductions import StorageWeakRef


class Looked:
    def __init__(self):
        self._known = {}

    @staticmethod
    def _key(x):
        """None where torch does not count writes (inference_mode), or has no storage to tell of."""
        try:
            reference = StorageWeakRef(x.untyped_storage())
            return (reference.cdata, x.storage_offset(), tuple(sorted(zip(x.stride(), x.shape))), x.dtype,
                    x._version), reference
        except (RuntimeError, NotImplementedError, AttributeError):
            return None

    def get(self, x, compute, is_written):
        """The numbers that compute(x) gives; is_written: by a call that torch may not have counted yet."""
        key = self._key(x)
        if key is None:
            return compute(x)
        known = None if is_written else self._known.get(key[0])
        if known is None:
            known = self._known[key[0]] = (compute(x), key[1])
        return known[0]

    def forget(self):
        self._known.clear()
