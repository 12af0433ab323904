"""Vector code for batches, compiled by LLVM: the default backend."""
