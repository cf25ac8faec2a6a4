"""CUDA kernels as texts, and launches of them as plans; no module here needs a device."""
