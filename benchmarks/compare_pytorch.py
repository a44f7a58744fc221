#!/usr/bin/env python3
"""dew_train's step against PyTorch eager on this machine, in one run: the two take turns, round by round.

    benchmarks/compare_pytorch.py BUILD [--shapes 10m 124m gpt2] [--precision f32 bf16] [--threads 1 2]
                                  [--rounds 3] [--steps 5]
    benchmarks/compare_pytorch.py BUILD --ranks2 [--shapes 10m 124m] [the same options, but for threads]

BUILD is a build folder with benchmarks/bench_step. PyTorch must be importable by this interpreter; which
version and which matrix library are fastest differs between processors, so try those at hand. Both train the
same model with AdamW and clipping at 1: 10m and 124m are decoders with RMSNorm, rotary positions, causal
attention and SwiGLU; gpt2 has LayerNorm, learned positions, tanh GELU and biases. bf16 is precision.compute
in dew_train and torch.autocast in PyTorch, with weights in f32 in both. PyTorch gets its fastest ways: fused
attention, fused AdamW, passive waiting of idle threads, and none of the environment variables that pin its
matrix library to an older processor.

--ranks2 needs no PyTorch: dew_train on 2 ranks of one thread (fsdp 2) against 1 rank of 2 threads.
"""
import argparse, json, os, pathlib, subprocess, sys

DECODER = dict(file="decoder_10m", gpt2=False, seq_len=256)
SHAPES = {
    "10m": DECODER | dict(layers=6, width=384, heads=6, mlp=1024, vocab=256, tied=False, batch=8),
    "124m": DECODER | dict(file="decoder_124m", layers=12, width=768, heads=12, mlp=2048, vocab=50257,
                           tied=True, batch=4),
    "gpt2": DECODER | dict(file="gpt2_124m", gpt2=True, layers=12, width=768, heads=12, mlp=3072, vocab=50257,
                           tied=True, batch=4),
}
HERE = pathlib.Path(__file__).resolve()


def make_model(shape):
    """The decoder of a shape: called with tokens and targets, it gives the mean loss."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    D, H, L, V, S, B = (shape[k] for k in ("width", "heads", "layers", "vocab", "seq_len", "batch"))
    K, gpt2 = D // H, shape["gpt2"]
    angles = torch.outer(torch.arange(S).float(), 10000.0 ** (-2 * torch.arange(K // 2).float() / K))
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    hidden = torch.full((S, S), float("-inf")).triu(1)

    def turn(x):
        a, b = x.chunk(2, -1)
        return x * cos.to(x.dtype) + torch.cat([-b, a], -1) * sin.to(x.dtype)

    def attend(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.softmax(q @ k.transpose(-1, -2) * K**-0.5 + hidden, -1) @ v

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(D))

        def forward(self, x):
            if hasattr(F, "rms_norm"):
                return F.rms_norm(x, (D,), self.weight, 1e-5)
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight

    def norm():
        return nn.LayerNorm(D) if gpt2 else RmsNorm()

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = norm(), norm()
            self.o = nn.Linear(D, D, bias=gpt2)
            self.up, self.down = nn.Linear(D, shape["mlp"], bias=gpt2), nn.Linear(shape["mlp"], D, bias=gpt2)
            if gpt2:
                self.qkv = nn.Linear(D, 3 * D)  # one product, as GPT-2 has it
            else:
                self.q, self.k, self.v = (nn.Linear(D, D, bias=False) for _ in range(3))
                self.gate = nn.Linear(D, shape["mlp"], bias=False)

        def projections(self, h):
            if gpt2:
                return (x.view(B, S, H, K).transpose(1, 2) for x in self.qkv(h).split(D, -1))
            q, k, v = (f(h).view(B, S, H, K).transpose(1, 2) for f in (self.q, self.k, self.v))
            return turn(q), turn(k), v

        def forward(self, x):
            y = attend(*self.projections(self.n1(x)))
            x = x + self.o(y.transpose(1, 2).reshape(B, S, D))
            h = self.n2(x)
            hidden = F.gelu(self.up(h), approximate="tanh") if gpt2 else F.silu(self.gate(h)) * self.up(h)
            return x + self.down(hidden)

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(V, D)
            self.positions = nn.Embedding(S, D) if gpt2 else None
            self.layers = nn.ModuleList(Layer() for _ in range(L))
            self.norm = norm()
            self.head = nn.Linear(D, V, bias=False)
            if shape["tied"]:
                self.head.weight = self.embed.weight

        def forward(self, tokens, targets):
            x = self.embed(tokens)
            if gpt2:
                x = x + self.positions(torch.arange(S))
            for layer in self.layers:
                x = layer(x)
            return F.cross_entropy(self.head(self.norm(x)).view(-1, V), targets.view(-1))

    model = Decoder()
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, 0, 0.02)
    return model


def torch_steps(shape, precision, threads, steps):
    """Trains `steps` steps and prints the seconds of each as JSON."""
    import contextlib, time
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model = make_model(shape)
    options = dict(lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    try:
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **options)
    except (RuntimeError, TypeError):
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True, **options)
    bf16 = precision == "bf16"
    autocast = torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else contextlib.nullcontext()
    seconds = []
    for _ in range(2 + steps):
        window = torch.randint(0, min(shape["vocab"], 256), (shape["batch"], shape["seq_len"] + 1))
        begin = time.perf_counter()
        with autocast:
            loss = model(window[:, :-1].contiguous(), window[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
    parameters = sum(p.numel() for p in model.parameters())
    print(json.dumps(dict(version=torch.__version__, seconds=seconds[2:], parameters=parameters)))


def output_of(command, env):
    result = subprocess.run(command, env=env, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: exit {result.returncode}\n{result.stderr.strip()[-1000:]}")
    return result.stdout


def run_torch(name, precision, threads, steps):
    """The best step, s, and what ran it."""
    env = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    env.update(OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    result = json.loads(output_of([sys.executable, str(HERE), "--torch-steps", name, "--precision", precision,
                                   "--threads", str(threads), "--steps", str(steps)], env))
    return min(result["seconds"]), f"PyTorch {result['version']}"


def run_dew(build, name, precision, threads, steps, ranks=1):
    """The best step, s."""
    command = [f"{build}/benchmarks/bench_step", str(HERE.parent / "shapes" / f"{SHAPES[name]['file']}.yaml"),
               "--steps", str(steps), "--set", f"precision.compute={precision}"]
    if ranks > 1:
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["mpirun", *root, "-np", str(ranks), *command, "--set", f"mesh.fsdp={ranks}"]
    text = output_of(command, dict(os.environ, OMP_NUM_THREADS=str(threads)))
    return float(text.split("best ")[1].split()[0]) / 1e3


def compare(title, columns, cases, rounds):
    """Prints the best of both of each case: its labels, what runs ours, what runs theirs (with a note)."""
    print(f"{title}  {columns[0]:>14} {columns[1]:>16}  ratio  (best of {rounds} rounds)")
    for labels, ours, theirs in cases:
        best, note = [float("inf")] * 2, ""
        for _ in range(rounds):
            best[0] = min(best[0], ours())
            seconds, note = theirs()
            best[1] = min(best[1], seconds)
        ours_ms, theirs_ms = (1e3 * seconds for seconds in best)
        line = f"{labels}  {ours_ms:14.1f} {theirs_ms:16.1f} {theirs_ms / ours_ms:6.2f}  {note}"
        print(line.rstrip(), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES)
    parser.add_argument("--precision", nargs="+", default=["f32"], choices=["f32", "bf16"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--ranks2", action="store_true", help="2 ranks against 2 threads, without PyTorch")
    parser.add_argument("--torch-steps", choices=SHAPES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_steps:
        shape = SHAPES[options.torch_steps]
        return torch_steps(shape, options.precision[0], options.threads[0], options.steps)
    if not options.build:
        parser.error("name the build folder")
    names = options.shapes or (["10m", "124m"] if options.ranks2 else list(SHAPES))
    build, steps = options.build, options.steps
    if options.ranks2:
        cases = ((f"{name:6} {precision:9}", lambda: run_dew(build, name, precision, 1, steps, ranks=2),
                  lambda: (run_dew(build, name, precision, 2, steps), ""))
                 for name in names for precision in options.precision)
        return compare(f"{'shape':6} {'precision':9}", ("2 ranks ms", "1 rank ms"), cases, options.rounds)
    cases = ((f"{name:6} {precision:9} {threads:7}",
              lambda: run_dew(build, name, precision, threads, steps),
              lambda: run_torch(name, precision, threads, steps))
             for name in names for precision in options.precision for threads in options.threads)
    columns = ("dew_train ms", "PyTorch ms")
    compare(f"{'shape':6} {'precision':9} threads", columns, cases, options.rounds)


if __name__ == "__main__":
    main()
