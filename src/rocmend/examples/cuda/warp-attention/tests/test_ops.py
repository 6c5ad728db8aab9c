import pytest
import torch

from warp_attention import Block, attention, keep_above, rms_norm

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():  # the kernels have none
        yield


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("columns", [1, 31, 64, 1000])
def test_rms_norm(device, columns):
    torch.manual_seed(0)
    x, weight = torch.randn(5, columns, device=device), torch.randn(columns, device=device)
    wanted = torch.nn.functional.rms_norm(x.double(), (columns,), weight.double(), 1e-6)
    torch.testing.assert_close(rms_norm(x, weight), wanted.float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 32, 33, 65, 10000])
def test_keep_above(device, n):
    torch.manual_seed(0)
    x = torch.randn(n, device=device)
    torch.testing.assert_close(keep_above(x, 0.25).sort().values, x[x > 0.25].sort().values)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [32, 64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (33, 65), (7, 130)])
def test_attention(device, dim, causal, queries, keys):
    torch.manual_seed(0)
    q = torch.randn(2, queries, dim, device=device)
    k, v = torch.randn(2, 2, keys, dim, device=device)
    mask = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries) if causal else None
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask)
    torch.testing.assert_close(attention(q, k, v, causal), wanted.float(), rtol=1e-4, atol=1e-4)


def test_block():
    torch.manual_seed(0)
    block = Block(heads=2, dim=32)
    x = torch.randn(9, 64)
    first = block(x)
    x[5:] = 0  # a causal block's first tokens know nothing of later ones
    torch.testing.assert_close(block(x)[:5], first[:5])
