"""torch for the tests that need it: the one place where they are skipped without it."""

import pytest

collect_ignore = ["gpu_kernels.py"]  # no test: a module that needs torch and Triton


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: pip install torch")


@pytest.fixture
def cuda(torch):
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    return torch.device("cuda")
