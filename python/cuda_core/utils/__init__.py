"""Functions beside the classes: work on several buffers of managed memory at once."""

from cuda_core._core import discard_batch, discard_prefetch_batch, prefetch_batch

__all__ = ["discard_batch", "discard_prefetch_batch", "prefetch_batch"]
