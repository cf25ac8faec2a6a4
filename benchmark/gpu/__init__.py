"""What functions take on a GPU, beside its own speed, cuBLAS and torch."""
