"""The grouping family: skew-proof stream partitioning as fast kernels with one contract."""
