"""Images, shifts, positions and sums along axes, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled


def _image(draw: Draw) -> tuple[int, int, int]:
    return draw.few(8, 16), draw.few(32, 64), 4 if draw.small else draw.few(56, 112)


def _sequence(draw: Draw) -> tuple[int, int, int]:
    return draw.few(8, 16), draw.size(512, 1024), draw.size(256, 768)


def pixels_to_channels(draw: Draw) -> Spelled:
    """Pixels that become channels."""
    b, c, h = _image(draw)
    shape = f"({b}, {c}, {h // 2}, 2, {h // 2}, 2)"
    return spelled(
        {"x": (b, c, h, h)},
        "F.pixel_unshuffle(x, 2) * 2",
        f"x.view{shape}.permute(0, 1, 3, 5, 2, 4).reshape({b}, {4 * c}, {h // 2}, {h // 2}) * 2",
        f"2 * np.transpose(x.reshape{shape}, (0, 1, 3, 5, 2, 4))"
        f".reshape({b}, {4 * c}, {h // 2}, {h // 2})",
    )


def focused(draw: Draw) -> Spelled:
    """The four pixels of a square, one behind the other as channels."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h)},
        "torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]],"
        " 1)",
        f"t = x.view({b}, {c}, {h // 2}, 2, {h // 2}, 2).permute(0, 5, 3, 1, 2, 4)\n"
        f"t.reshape({b}, {4 * c}, {h // 2}, {h // 2})",
        "np.concatenate([x[:, :, i::2, j::2] for j in range(2) for i in range(2)], axis=1)",
    )


def point_convolution(draw: Draw) -> Spelled:
    """A convolution of single pixels."""
    b, c, h = _image(draw)
    o = draw.few(64, 128)
    return spelled(
        {"x": (b, c, h, h), "w": (o, c)},
        "F.conv2d(x, w[:, :, None, None])",
        "torch.einsum('bchw,oc->bohw', x, w)",
        f"np.matmul(w, x.reshape({b}, {c}, {h * h})).reshape({b}, {o}, {h}, {h})",
    )


def laplacian(draw: Draw) -> Spelled:
    """The second differences of an image along both axes."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h)},
        "4 * x[..., 1:-1, 1:-1] - x[..., :-2, 1:-1] - x[..., 2:, 1:-1] - x[..., 1:-1, :-2]"
        " - x[..., 1:-1, 2:]",
        f"m = {h} - 2\ny = x.narrow(3, 1, m)\nz = x.narrow(2, 1, m)\n"
        "4 * y.narrow(2, 1, m) - (y.narrow(2, 0, m) + y.narrow(2, 2, m)"
        " + z.narrow(3, 0, m) + z.narrow(3, 2, m))",
        "t = 4 * x[:, :, 1:-1, 1:-1] - (x[:, :, :-2, 1:-1] + x[:, :, 2:, 1:-1])\n"
        "t - np.add(x[:, :, 1:-1, :-2], x[:, :, 1:-1, 2:])",
    )


def gray(draw: Draw) -> Spelled:
    """The brightness of colors."""
    b, h = draw.few(16, 32), draw.size(256, 512)
    return spelled(
        {"x": (b, 3, h, h)},
        "0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]",
        "r, g, b = x.unbind(1)\nr * 0.299 + g * 0.587 + b * 0.114",
        "(x * np.array([0.299, 0.587, 0.114], dtype=x.dtype)[:, None, None]).sum(1)",
    )


def standard_colors(draw: Draw) -> Spelled:
    """Colors less their means over their deviations."""
    b, h = draw.few(16, 32), draw.size(224, 448)
    return spelled(
        {"x": (b, 3, h, h), "m": (3,), "n": (3,)},
        "(x - m[:, None, None]) / n[:, None, None]",
        "x.sub(m.view(-1, 1, 1)).div(n.view(-1, 1, 1))",
        "np.transpose((np.transpose(x, (0, 2, 3, 1)) - m) / n, (0, 3, 1, 2))",
    )


def framed(draw: Draw) -> Spelled:
    """An image with zeros around it, added to another."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h), "y": (b, c, h + 2, h + 2)},
        "y + F.pad(x, (1, 1, 1, 1))",
        "y + np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))",
        "t = torch.zeros_like(y)\nt[..., 1:-1, 1:-1] = x\ny + t",
    )


def mirrored(draw: Draw) -> Spelled:
    """The mean of an image and its mirror image."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h)},
        "(x + x.flip(-1)) / 2",
        f"0.5 * (x + x[..., torch.arange({h} - 1, -1, -1)])",
        "(x + np.flip(x, axis=-1)) * 0.5",
    )


def largest_and_mean(draw: Draw) -> Spelled:
    """The mean and the largest channel of each pixel."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h)},
        "torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)",
        "torch.stack((x.mean(dim=1), x.max(dim=1).values), dim=1)",
        "np.stack([np.mean(x, axis=1), np.max(x, axis=1)], axis=1)",
    )


def expected_places(draw: Draw) -> Spelled:
    """The expected place in each channel, by a softmax over its pixels."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h)},
        f"t = torch.softmax(x.flatten(2), -1).view({b}, {c}, {h}, {h})\n"
        f"i = torch.arange({h}, dtype=x.dtype)\n"
        "torch.stack([(t.sum(-1) * i).sum(-1), (t.sum(-2) * i).sum(-1)], -1)",
        f"t = F.softmax(x.view({b}, {c}, {h * h}), dim=2).unflatten(-1, ({h}, {h}))\n"
        f"i = torch.arange({h}).to(x.dtype)\n"
        "torch.stack((torch.einsum('bchw,h->bc', t, i), torch.einsum('bchw,w->bc', t, i)), 2)",
        "t = np.exp(x - x.max((2, 3), keepdims=True))\nt = t / t.sum((2, 3), keepdims=True)\n"
        f"i = np.arange({h}, dtype=x.dtype)\n"
        "np.stack([(t * i[:, None]).sum((2, 3)), (t * i).sum((2, 3))], axis=-1)",
    )


def shifted_windows(draw: Draw) -> Spelled:
    """An image rolled along both axes, added to itself."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, h, h, c)},
        "x + torch.roll(x, (-1, -1), (1, 2))",
        "t = torch.cat([x[:, 1:], x[:, :1]], 1)\nx + torch.cat([t[:, :, 1:], t[:, :, :1]], 2)",
        "x + np.roll(np.roll(x, -1, axis=1), -1, axis=2)",
    )


def pooled_tokens(draw: Draw) -> Spelled:
    """Means of a few positions side by side."""
    b, s, d = _sequence(draw)
    k = draw.few(2, 4)
    s = s * k
    return spelled(
        {"x": (b, s, d)},
        f"x.view({b}, {s // k}, {k}, {d}).mean(2)",
        f"F.avg_pool1d(x.transpose(1, 2), {k}).transpose(1, 2)",
        f"sum(x[:, i::{k}] for i in range({k})) / {k}",
    )


def windows_in_a_layer(draw: Draw) -> Spelled:
    """A causal convolution of a few positions."""
    b, s, d = draw.few(4, 8), draw.size(512, 1024), draw.few(64, 128)
    o = draw.few(64, 128)
    return spelled(
        {"x": (b, s, d), "w": (3, d, o)},
        "F.conv1d(F.pad(x.mT, (2, 0)), w.permute(2, 1, 0)).mT",
        "t = F.pad(x, (0, 0, 2, 0)).unfold(1, 3, 1)\ntorch.einsum('bsdk,kdo->bso', t, w)",
        f"t = np.pad(x, ((0, 0), (2, 0), (0, 0)))\nsum(t[:, i : i + {s}] @ w[i] for i in range(3))",
    )


def with_first_token(draw: Draw) -> Spelled:
    """A token in front of a sequence, and positions added."""
    b, s, d = _sequence(draw)
    return spelled(
        {"x": (b, s, d), "c": (d,), "p": (s + 1, d)},
        f"torch.cat([c.expand({b}, 1, {d}), x], 1) + p",
        f"torch.cat((c[None, None].repeat({b}, 1, 1), x), dim=1) + p[None]",
        f"np.concatenate([np.broadcast_to(c, ({b}, 1, {d})), x], axis=1) + p",
    )


def in_turn(draw: Draw) -> Spelled:
    """The columns of two arrays in turn."""
    m, n = draw.size(2048, 4096), draw.size(512, 1024)
    return spelled(
        {"x": (m, n), "y": (m, n)},
        "torch.stack([x, y], -1).flatten(-2)",
        f"t = x.new_empty({m}, {2 * n})\nt[:, 0::2] = x\nt[:, 1::2] = y\nt",
        f"np.concatenate([x[..., None], y[..., None]], axis=-1).reshape({m}, {2 * n})",
    )


def from_the_end(draw: Draw) -> Spelled:
    """Sums from each position to the end."""
    b, s, d = _sequence(draw)
    return spelled(
        {"x": (b, s, d)},
        "x.flip(1).cumsum(1).flip(1)",
        "np.flip(np.cumsum(np.flip(x, axis=1), axis=1), axis=1)",
        "np.cumsum(x[:, ::-1], axis=1)[:, ::-1]",
    )


def triangle_sums(draw: Draw) -> Spelled:
    """Sums until each position, of a product."""
    b, s, d = draw.few(8, 16), draw.size(256, 512), draw.size(256, 512)
    return spelled(
        {"x": (b, s, d)},
        f"torch.ones({s}, {s}, dtype=x.dtype).tril() @ x",
        f"i = torch.arange({s})\ntorch.einsum('qk,bkd->bqd', (i[:, None] >= i).to(x.dtype), x)",
        f"np.einsum('qk,bkd->bqd', np.tril(np.ones(({s}, {s}), dtype=x.dtype)), x)",
    )


def second_differences(draw: Draw) -> Spelled:
    """Second differences along rows."""
    m, n = draw.size(2048, 4096), draw.size(1024, 4096)
    return spelled(
        {"x": (m, n)},
        "torch.diff(x, n=2, dim=1)",
        "x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]",
        "np.diff(np.diff(x, axis=1), axis=1)",
    )


def of_labels(draw: Draw) -> Spelled:
    """The logit of each label."""
    m, k = draw.size(4096, 8192), draw.size(1000, 4096)
    return spelled(
        {"x": (m, k), "n": (m,)},
        "x.gather(1, n.long()[:, None])[:, 0]",
        f"x[torch.arange({m}), n.long()]",
        "np.take_along_axis(x, n.astype(np.int64)[:, None], axis=1)[:, 0]",
    )


def diagonals(draw: Draw) -> Spelled:
    """A number added to the diagonal of each matrix."""
    b, m = draw.few(16, 32), draw.size(256, 512)
    return spelled(
        {"x": (b, m, m)},
        f"x + 0.1 * torch.eye({m}, dtype=x.dtype)",
        f"i = torch.arange({m})\ntorch.where(i[:, None] == i, x + 0.1, x)",
        f"x + 0.1 * np.eye({m}, dtype=x.dtype)[None]",
    )


def scaled_rows(draw: Draw) -> Spelled:
    """A product whose rows are scaled by degrees, as layers of graphs have it."""
    m, d = draw.size(1024, 2048), draw.size(256, 512)
    return spelled(
        {"a": (m, m), "x": (m, d), "n": (m,)},
        "t = n.rsqrt()\n(t[:, None] * a * t) @ x",
        "t = n.rsqrt()[:, None]\nt * (a @ (t * x))",
        "t = 1 / np.sqrt(n)\nnp.einsum('i,ij,j,jd->id', t, a, t, x)",
    )


def both_present(draw: Draw) -> Spelled:
    """Pairs of positions of which both are there."""
    b, s = draw.few(8, 16), draw.size(512, 1024)
    return spelled(
        {"x": (b, s, s), "n": (b, s)},
        "m = n > 1\ntorch.where(m[:, :, None] & m[:, None], x, 0)",
        "m = (n > 1).to(x.dtype)\nx * m.unsqueeze(1) * m.unsqueeze(2)",
        "m = np.greater(n, 1)\nx * np.einsum('bi,bj->bij', m.astype(x.dtype), m.astype(x.dtype))",
    )


def augmented(draw: Draw) -> Spelled:
    """The mean of an image and its three mirror images."""
    b, c, h = _image(draw)
    return spelled(
        {"x": (b, c, h, h)},
        "(x + x.flip(-1) + x.flip(-2) + x.flip(-1, -2)) / 4",
        f"i = torch.arange({h} - 1, -1, -1)\ny = (x + x[..., i]) / 2\n(y + y[..., i, :]) / 2",
        "(x + np.flip(x, 3) + x[..., ::-1, :] + x[..., ::-1, ::-1]) * 0.25",
    )


def even_then_odd(draw: Draw) -> Spelled:
    """The even columns, then the odd ones."""
    m, n = draw.size(2048, 4096), draw.size(512, 1024)
    return spelled(
        {"x": (m, n)},
        "torch.cat([x[:, ::2], x[:, 1::2]], 1)",
        f"x.view({m}, {n // 2}, 2).transpose(1, 2).reshape({m}, {n})",
        f"np.concatenate([x[:, np.arange(i, {n}, 2)] for i in range(2)], axis=1)",
    )


def halved_pairs(draw: Draw) -> Spelled:
    """Half the sums of neighbours, then half their differences."""
    m, n = draw.size(2048, 4096), draw.size(512, 1024)
    return spelled(
        {"x": (m, n)},
        "a, b = x[:, ::2], x[:, 1::2]\ntorch.cat([a + b, a - b], 1) / 2",
        f"y = x.view({m}, {n // 2}, 2)\n"
        "torch.cat((y.sum(-1), y[..., 0] - y[..., 1]), dim=1) * 0.5",
        f"a, b = np.moveaxis(x.reshape({m}, {n // 2}, 2), -1, 0)\n"
        "np.hstack([(a + b) / 2, (a - b) / 2])",
    )


FAMILIES = (
    pixels_to_channels, focused, point_convolution, laplacian, gray, standard_colors, framed,
    mirrored, largest_and_mean, expected_places, shifted_windows, pooled_tokens,
    windows_in_a_layer, with_first_token, in_turn, from_the_end, triangle_sums,
    second_differences, of_labels, diagonals, scaled_rows, both_present, augmented,
    even_then_odd, halved_pairs,
)  # fmt: skip
