#!/usr/bin/env python3
"""Writes what GPT-2, Llama-3 and Qwen3 of Hugging Face transformers compute, for a test of the decoder.

Run from anywhere; it reads nothing and writes tests/model/golden/*.txt, which
tests/model/golden_decoder_test.cpp compares with:

    python3 -m venv VENV
    VENV/bin/pip install torch transformers numpy
    VENV/bin/python scripts/golden_decoders.py

Models are tiny and in f64. Weights, tokens and targets are the test's own functions of names and indices.
"""

import contextlib
import math
import pathlib
from unittest import mock

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers import Qwen3Config, Qwen3ForCausalLM

SEED, ROWS, LENGTH, VOCAB = 7, 2, 11, 29
MOST_ELEMENTS, MOST_BYTES = 40, 60000
MASK32, MASK64 = 2**32 - 1, 2**64 - 1


# lib/base/philox.h once more.


def philox(key, low, high):
    """Philox4x32-10: four words of 32 bits."""
    c = [low & MASK32, low >> 32, high & MASK32, high >> 32]
    k0, k1 = key & MASK32, key >> 32
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & MASK32, (a >> 32) ^ c[3] ^ k1, a & MASK32]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c


def mix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK64
    return h


def stream_key(seed, name):
    return mix64(fnv1a(name) ^ mix64((seed + 0x9E3779B97F4A7C15) & MASK64))


def check_generators():
    """The published answers of Random123, FNV-1a and splitmix64."""
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(MASK64, MASK64, MASK64) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    digits_of_pi = philox(0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E)
    assert digits_of_pi == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    assert fnv1a("a") == 0xAF63DC4C8601EC8C and fnv1a("foobar") == 0x85944171F73967E8
    assert mix64(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF


# What the test sets: weights, tokens, targets.


def weight(name, shape):
    """Matrices are within 0.4 of 0, weights of norms within 0.5 of 1, biases within 0.5 of 0."""
    key = stream_key(SEED, name)
    u = torch.tensor([philox(key, i, 0)[0] / 2**32 - 0.5 for i in range(math.prod(shape))])
    if len(shape) == 2:
        u = u * 0.8
    elif name.endswith("norm"):
        u = 1 + u
    return u.reshape(shape).requires_grad_()


def tokens():
    key = stream_key(SEED, "tokens")
    return torch.tensor([philox(key, i, 0)[0] % VOCAB for i in range(ROWS * LENGTH)]).reshape(ROWS, LENGTH)


def targets():
    key = stream_key(SEED, "targets")
    blocks = [philox(key, i, 0) for i in range(ROWS * LENGTH)]
    return torch.tensor([-1 if b[1] % 4 == 0 else b[0] % VOCAB for b in blocks]).reshape(ROWS, LENGTH)


# From the parameters here to those of transformers.


def gpt2_parameters(keys):
    """The names here with their shapes, and a function from those tensors to GPT2LMHeadModel's."""
    d, f = keys["width"], keys["mlp"]
    shapes = {"embed.weight": (VOCAB, d), "embed.positions": (keys["max_positions"], d)}
    for i in range(keys["layers"]):
        attention, mlp = f"layers.{i}.attention.", f"layers.{i}.mlp."
        shapes |= {attention + name: (d, d) for name in ("wq", "wk", "wv", "wo")}
        shapes |= {attention + name: (d,) for name in ("norm", "norm_bias", "bq", "bk", "bv", "bo")}
        shapes |= {mlp + "up": (f, d), mlp + "up_bias": (f,), mlp + "down": (d, f)}
        shapes |= {mlp + name: (d,) for name in ("norm", "norm_bias", "down_bias")}
    shapes |= {"head.norm": (d,), "head.norm_bias": (d,)}
    if not keys["tied"]:
        shapes["head.weight"] = (VOCAB, d)

    def theirs(w):
        out = {"transformer.wte.weight": w["embed.weight"], "transformer.wpe.weight": w["embed.positions"]}
        for i in range(keys["layers"]):
            block, attention, mlp = f"transformer.h.{i}.", f"layers.{i}.attention.", f"layers.{i}.mlp."
            qkv = [w[attention + name] for name in ("wq", "wk", "wv")]
            biases = [w[attention + name] for name in ("bq", "bk", "bv")]
            out |= {  # Conv1D keeps [in, out]
                block + "ln_1.weight": w[attention + "norm"],
                block + "ln_1.bias": w[attention + "norm_bias"],
                block + "attn.c_attn.weight": torch.cat(qkv).T,
                block + "attn.c_attn.bias": torch.cat(biases),
                block + "attn.c_proj.weight": w[attention + "wo"].T,
                block + "attn.c_proj.bias": w[attention + "bo"],
                block + "ln_2.weight": w[mlp + "norm"],
                block + "ln_2.bias": w[mlp + "norm_bias"],
                block + "mlp.c_fc.weight": w[mlp + "up"].T,
                block + "mlp.c_fc.bias": w[mlp + "up_bias"],
                block + "mlp.c_proj.weight": w[mlp + "down"].T,
                block + "mlp.c_proj.bias": w[mlp + "down_bias"],
            }
        out |= {"transformer.ln_f.weight": w["head.norm"], "transformer.ln_f.bias": w["head.norm_bias"]}
        return out | {"lm_head.weight": w["embed.weight" if keys["tied"] else "head.weight"]}

    return shapes, theirs


def llama_parameters(keys):
    """As gpt2_parameters, for LlamaForCausalLM and Qwen3ForCausalLM, whose names differ in one place each."""
    d, f, k = keys["width"], keys["mlp"], keys["head_width"]
    q, kv = keys["heads"] * k, keys["kv_heads"] * k
    layer = {  # by the name here: the name there and the shape
        "attention.norm": ("input_layernorm.weight", (d,)),
        "attention.wq": ("self_attn.q_proj.weight", (q, d)),
        "attention.wk": ("self_attn.k_proj.weight", (kv, d)),
        "attention.wv": ("self_attn.v_proj.weight", (kv, d)),
        "attention.wo": ("self_attn.o_proj.weight", (d, q)),
        "mlp.norm": ("post_attention_layernorm.weight", (d,)),
        "mlp.gate": ("mlp.gate_proj.weight", (f, d)),
        "mlp.up": ("mlp.up_proj.weight", (f, d)),
        "mlp.down": ("mlp.down_proj.weight", (d, f)),
    }
    if keys["bias"]:
        layer |= {
            "attention.bq": ("self_attn.q_proj.bias", (q,)),
            "attention.bk": ("self_attn.k_proj.bias", (kv,)),
            "attention.bv": ("self_attn.v_proj.bias", (kv,)),
            "attention.bo": ("self_attn.o_proj.bias", (d,)),
            "mlp.gate_bias": ("mlp.gate_proj.bias", (f,)),
            "mlp.up_bias": ("mlp.up_proj.bias", (f,)),
            "mlp.down_bias": ("mlp.down_proj.bias", (d,)),
        }
    if keys["qk_norm"]:
        layer["attention.q_norm"] = ("self_attn.q_norm.weight", (k,))
        layer["attention.k_norm"] = ("self_attn.k_norm.weight", (k,))
    shapes = {"embed.weight": (VOCAB, d), "head.norm": (d,)}
    if not keys["tied"]:
        shapes["head.weight"] = (VOCAB, d)
    for i in range(keys["layers"]):
        shapes |= {f"layers.{i}.{name}": shape for name, (_, shape) in layer.items()}

    def theirs(w):
        out = {"model.embed_tokens.weight": w["embed.weight"], "model.norm.weight": w["head.norm"]}
        for i in range(keys["layers"]):
            for here, (there, _) in layer.items():
                out[f"model.layers.{i}.{there}"] = w[f"layers.{i}.{here}"]
        return out | {"lm_head.weight": w["embed.weight" if keys["tied"] else "head.weight"]}

    return shapes, theirs


# The models.


def gpt2(keys):
    activation = {"gelu_tanh": "gelu_new", "gelu": "gelu"}[keys["activation"]]
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=keys["max_positions"],
            n_embd=keys["width"],
            n_layer=keys["layers"],
            n_head=keys["heads"],
            n_inner=keys["mlp"],
            activation_function=activation,
            layer_norm_epsilon=keys["norm_eps"],
            tie_word_embeddings=keys["tied"],
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
            attn_implementation="eager",
        )
    )


def llama_config(keys):
    """The arguments that the configs of Llama and Qwen3 share."""
    rope = {"rope_type": "default", "rope_theta": keys["rope_theta"]}
    if scaling := keys.get("rope_scaling"):
        rope |= {
            "rope_type": scaling["kind"],
            "factor": scaling["factor"],
            "low_freq_factor": scaling["low_freq_factor"],
            "high_freq_factor": scaling["high_freq_factor"],
            "original_max_position_embeddings": scaling["original_positions"],
        }
    return dict(
        vocab_size=VOCAB,
        hidden_size=keys["width"],
        intermediate_size=keys["mlp"],
        num_hidden_layers=keys["layers"],
        num_attention_heads=keys["heads"],
        num_key_value_heads=keys["kv_heads"],
        head_dim=keys["head_width"],
        hidden_act="silu",
        max_position_embeddings=1024,
        rms_norm_eps=keys["norm_eps"],
        rope_parameters=rope,
        tie_word_embeddings=keys["tied"],
        attention_bias=keys["bias"],
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="eager",
    )


def check_bands(keys, inverse_frequencies):
    """That some frequencies are kept, some divided by the factor, some in between."""
    scaling, k = keys["rope_scaling"], keys["head_width"]
    plain = keys["rope_theta"] ** (-torch.arange(0, k, 2, dtype=torch.float64) / k)
    share = inverse_frequencies / plain
    kept = torch.isclose(share, torch.ones(1))
    divided = torch.isclose(share * scaling["factor"], torch.ones(1))
    assert kept.any() and divided.any() and (~kept & ~divided).any(), share


def llama(keys):
    model = LlamaForCausalLM(LlamaConfig(**llama_config(keys), mlp_bias=keys["bias"]))
    if "rope_scaling" in keys:
        check_bands(keys, model.model.rotary_emb.inv_freq)
    return model


def qwen3(keys):
    return Qwen3ForCausalLM(Qwen3Config(**llama_config(keys)))


# 32 positions put whole turns of 6.3 in the band that is kept, of 20 in between, of 63 in the one divided.
LLAMA3_SCALING = dict(kind="llama3", factor=8, low_freq_factor=1, high_freq_factor=4, original_positions=32)
GPT2 = gpt2, gpt2_parameters
LLAMA = llama, llama_parameters
QWEN3 = qwen3, llama_parameters


def gpt2_keys(**keys):
    return keys | dict(layers=2, vocab=VOCAB, norm="layer", position="learned", bias=True, qk_norm=False)


def llama_keys(bias=False, qk_norm=False, **keys):
    keys |= dict(layers=2, vocab=VOCAB, norm="rms", activation="swiglu", position="rope")
    return keys | dict(bias=bias, qk_norm=qk_norm)


# norm_eps is large in some, so that it matters.
CASES = {
    "gpt2": (
        *GPT2,
        gpt2_keys(width=18, heads=3, kv_heads=3, head_width=6, mlp=25)
        | dict(activation="gelu_tanh", max_positions=13, tied=True, norm_eps=1e-5),
    ),
    "gpt2_exact_gelu": (
        *GPT2,
        gpt2_keys(width=12, heads=2, kv_heads=2, head_width=6, mlp=7)
        | dict(activation="gelu", max_positions=LENGTH, tied=False, norm_eps=0.01),
    ),
    "llama": (
        *LLAMA,
        llama_keys(width=20, heads=4, kv_heads=2, head_width=6, mlp=13)
        | dict(tied=False, norm_eps=1e-5, rope_theta=10000),
    ),
    "llama3_rope_scaling": (
        *LLAMA,
        llama_keys(width=12, heads=6, kv_heads=3, head_width=8, mlp=17)
        | dict(tied=False, norm_eps=1e-5, rope_theta=100, rope_scaling=LLAMA3_SCALING),
    ),
    "llama_biases": (
        *LLAMA,
        llama_keys(width=12, heads=3, kv_heads=1, head_width=4, mlp=9, bias=True)
        | dict(tied=True, norm_eps=1e-6, rope_theta=500),
    ),
    "qwen3": (
        *QWEN3,
        llama_keys(width=15, heads=6, kv_heads=2, head_width=4, mlp=11, qk_norm=True)
        | dict(tied=True, norm_eps=0.01, rope_theta=500),
    ),
}


class OnlyF64(TorchDispatchMode):
    """Refuses every op that reads or makes a floating tensor of less than 64 bits."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves((args, kwargs or {}, out)):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                assert leaf.dtype == torch.double, f"{func} in {leaf.dtype}"
        return out


@contextlib.contextmanager
def all_in_f64():
    """transformers forms norms, angles and softmax in f32 whatever the weights are: here f32 means f64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    with (
        mock.patch.object(torch, "float32", torch.double),
        mock.patch.object(torch, "float", torch.double),
        mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
        OnlyF64(),
    ):
        yield
    torch.set_default_dtype(before)


def yaml(value):
    if isinstance(value, dict):
        return "{" + inner_yaml(value) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def inner_yaml(keys):
    return ", ".join(f"{key}: {yaml(value)}" for key, value in keys.items())


def digits(values):
    return " ".join(format(value, ".17g") for value in values)


def golden_text(build, parameters, keys):
    model = build(keys).train()  # no dropout: the mode of training is the one compared
    shapes, theirs = parameters(keys)
    weights = {name: weight(name, shape) for name, shape in shapes.items()}
    bound = theirs(weights)
    expected = {name: tensor.shape for name, tensor in model.named_parameters(remove_duplicate=False)}
    assert {name: tensor.shape for name, tensor in bound.items()} == expected

    logits = torch.func.functional_call(model, bound, kwargs=dict(input_ids=tokens(), use_cache=False)).logits
    cross_entropy = torch.nn.functional.cross_entropy
    loss = cross_entropy(logits.reshape(-1, VOCAB), targets().reshape(-1), ignore_index=-1)
    loss.backward()

    torch_version = torch.__version__.split("+")[0]
    lines = [
        f"# scripts/golden_decoders.py, torch {torch_version}, transformers {transformers.__version__}",
        f"model {inner_yaml(keys)}",
        f"rows {ROWS}",
        f"length {LENGTH}",
        f"vocab {VOCAB}",
        f"loss {digits([loss.item()])}",
        f"log_probabilities {LENGTH} {VOCAB}",
    ]
    lines += [digits(row) for row in torch.log_softmax(logits[0], -1).tolist()]
    for name, tensor in weights.items():
        gradient = tensor.grad.reshape(-1)
        lines.append(f"parameter {name} {' '.join(map(str, tensor.shape))}")
        lines.append(f"norm {digits([gradient.norm().item()])}")
        lines.append(f"elements {digits(gradient[:MOST_ELEMENTS].tolist())}")
    return "\n".join(lines) + "\n"


def main():
    check_generators()
    torch.set_num_threads(1)  # one order of summation
    folder = pathlib.Path(__file__).resolve().parent.parent / "tests" / "model" / "golden"
    folder.mkdir(exist_ok=True)
    for name, case in CASES.items():
        with all_in_f64():
            text = golden_text(*case)
        assert len(text) < MOST_BYTES, (name, len(text))
        (folder / f"{name}.txt").write_text(text)
        print(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
