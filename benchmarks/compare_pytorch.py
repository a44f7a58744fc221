#!/usr/bin/env python3
"""dew_train's step against PyTorch eager on this machine, in one run: the two take turns, round by round.

    benchmarks/compare_pytorch.py BUILD [--shapes 10m 124m] [--threads 1 2] [--rounds 3] [--steps 5]

BUILD is a build folder with benchmarks/bench_step. PyTorch must be importable by this interpreter; which version and
which matrix library are fastest differs between processors, so try those at hand. Both train the same decoder: RMSNorm, rotary positions, causal attention, SwiGLU, AdamW,
clipping at 1, f32. PyTorch gets its fastest ways: fused attention, fused AdamW, passive waiting of idle threads, and
none of the environment variables that pin its matrix library to an older processor.
"""
import argparse, json, os, pathlib, subprocess, sys

SHAPES = {
    "10m": dict(layers=6, width=384, heads=6, mlp=1024, vocab=256, tied=False, seq_len=256, batch=8),
    "124m": dict(layers=12, width=768, heads=12, mlp=2048, vocab=50257, tied=True, seq_len=256, batch=4),
}
HERE = pathlib.Path(__file__).resolve()


def torch_steps(shape, threads, steps):
    """Trains `steps` steps and prints the seconds of each as JSON."""
    import time
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    D, H, L, V, S, B = (shape[k] for k in ("width", "heads", "layers", "vocab", "seq_len", "batch"))
    K = D // H
    angles = torch.outer(torch.arange(S).float(), 10000.0 ** (-2 * torch.arange(K // 2).float() / K))
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)

    def turn(x):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    hidden = torch.full((S, S), float("-inf")).triu(1)

    def attend(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.softmax(q @ k.transpose(-1, -2) * K**-0.5 + hidden, -1) @ v

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(D))

        def forward(self, x):
            if hasattr(F, "rms_norm"):
                return F.rms_norm(x, (D,), self.weight, 1e-5)
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = Norm(), Norm()
            self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
            self.gate, self.up = (nn.Linear(D, shape["mlp"], bias=False) for _ in range(2))
            self.down = nn.Linear(shape["mlp"], D, bias=False)

        def forward(self, x):
            h = self.n1(x)
            q, k, v = (f(h).view(B, S, H, K).transpose(1, 2) for f in (self.q, self.k, self.v))
            y = attend(turn(q), turn(k), v)
            x = x + self.o(y.transpose(1, 2).reshape(B, S, D))
            h = self.n2(x)
            return x + self.down(F.silu(self.gate(h)) * self.up(h))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(V, D)
            self.layers = nn.ModuleList(Layer() for _ in range(L))
            self.norm = Norm()
            self.head = nn.Linear(D, V, bias=False)
            if shape["tied"]:
                self.head.weight = self.embed.weight

        def forward(self, tokens, targets):
            x = self.embed(tokens)
            for layer in self.layers:
                x = layer(x)
            return F.cross_entropy(self.head(self.norm(x)).view(-1, V), targets.view(-1))

    model = Decoder()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 0.02)
    options = dict(lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    try:
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **options)
    except (RuntimeError, TypeError):
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True, **options)
    seconds = []
    for _ in range(2 + steps):
        window = torch.randint(0, min(V, 256), (B, S + 1))
        begin = time.perf_counter()
        loss = model(window[:, :-1].contiguous(), window[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps(dict(version=torch.__version__, seconds=seconds[2:])))


def environment(threads):
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    env.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    return env


def run_torch(name, threads, steps):
    command = [sys.executable, str(HERE), "--torch-steps", name, "--threads", str(threads), "--steps", str(steps)]
    result = json.loads(subprocess.run(command, env=environment(threads), check=True, capture_output=True, text=True).stdout)
    return min(result["seconds"]), result["version"]


def run_dew(build, name, threads, steps):
    shape = HERE.parent / "shapes" / f"decoder_{name}.yaml"
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    text = subprocess.run([f"{build}/benchmarks/bench_step", str(shape), "--steps", str(steps)], env=env, check=True,
                          capture_output=True, text=True).stdout
    return float(text.split("best ")[1].split()[0]) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?")
    parser.add_argument("--shapes", nargs="+", default=["10m", "124m"], choices=SHAPES)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--torch-steps", choices=SHAPES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_steps:
        return torch_steps(SHAPES[options.torch_steps], options.threads[0], options.steps)
    if not options.build:
        parser.error("name the build folder")
    print(f"{'shape':6} {'threads':>7} {'dew_train ms':>13} {'PyTorch ms':>11} {'ratio':>6}  (best of {options.rounds} rounds)")
    for name in options.shapes:
        for threads in options.threads:
            ours, theirs, version = [], [], ""
            for _ in range(options.rounds):
                ours.append(run_dew(options.build, name, threads, options.steps))
                seconds, version = run_torch(name, threads, options.steps)
                theirs.append(seconds)
            ratio = min(theirs) / min(ours)
            print(f"{name:6} {threads:7} {1e3 * min(ours):13.1f} {1e3 * min(theirs):11.1f} {ratio:6.2f}  PyTorch {version}", flush=True)


if __name__ == "__main__":
    main()
