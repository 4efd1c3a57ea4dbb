"""``torch.compile`` with our kernels: what of a captured graph is compiled, what runs eagerly."""
