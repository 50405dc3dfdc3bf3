"""The PyTorch side of bench/train_cpu --family llama: full training steps (training_steps.py) of a Llama on one fixed batch
of random tokens: RMS norms, rotary positions, grouped heads by scaled_dot_product_attention, a gated MLP, a tied output.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from training_steps import begin, parser_of, peak_rss, serve_language_model


def turned(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Block(nn.Module):
    def __init__(self, hidden, heads, key_heads, ffn):
        super().__init__()
        self.size, self.grouped = hidden // heads, key_heads != heads
        self.norm1 = nn.RMSNorm(hidden, eps=1e-5)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key_value = nn.Linear(hidden, 2 * key_heads * self.size, bias=False)
        self.attention_out = nn.Linear(hidden, hidden, bias=False)
        self.norm2 = nn.RMSNorm(hidden, eps=1e-5)
        self.gate = nn.Linear(hidden, ffn, bias=False)
        self.up = nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def attend(self, x, cos, sin):
        batch, seq, hidden = x.shape
        by_head = lambda y: y.view(batch, seq, -1, self.size).transpose(1, 2)
        q, (k, v) = by_head(self.query(x)), (by_head(part.contiguous()) for part in self.key_value(x).chunk(2, dim=2))
        y = F.scaled_dot_product_attention(turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True,
                                           enable_gqa=self.grouped)
        return self.attention_out(y.transpose(1, 2).reshape(batch, seq, hidden))

    def forward(self, x, cos, sin):
        x = x + self.attend(self.norm1(x), cos, sin)
        normed = self.norm2(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self, layers, hidden, heads, key_heads, ffn, seq, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, key_heads, ffn) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        size = hidden // heads
        angles = torch.arange(seq)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                into_residual = name.endswith(("attention_out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if into_residual else 0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def main():
    o = parser_of("Llama training steps with PyTorch, driven over standard input", layers=30, hidden=576, heads=9,
                  key_heads=3, ffn=1536, seq=1024, vocab=49152, llama=1).parse_args()
    stages = {"import": peak_rss()}
    begin(o)
    model = Llama(o.layers, o.hidden, o.heads, o.key_heads, o.ffn, o.seq, o.vocab)
    h = o.hidden
    layer = 2 * h * h + 2 * h * h * o.key_heads // o.heads + 3 * h * o.ffn
    serve_language_model(o, model, stages, 6 * (o.layers * layer + o.vocab * h) + 6 * o.layers * h * o.seq)


if __name__ == "__main__":
    main()
