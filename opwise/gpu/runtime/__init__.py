"""What runs on a device: memory, launches, CUDA graphs, cuBLAS, copies. ``device`` imports CuPy."""
