"""The large-system limit: equations of a step, engines that solve them, laws and limits."""

from pathlib import Path

from ..kernels import forget_stale_kernels

forget_stale_kernels(Path(__file__).parent)
