"""The PyTorch side of bench/train_cpu and bench/gpu: full GPT-2 training steps (training_steps.py) on one fixed batch of
random tokens, in fp32 on the CPU, or on a GPU with --device cuda, there also with --bf16 (autocast: fp32 weights and
gradients, as ours are).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from training_steps import begin, parser_of, peak_rss, serve_language_model


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def attend(self, x):
        batch, seq, hidden = x.shape
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(hidden, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.attention_out(y.transpose(1, 2).reshape(batch, seq, hidden))

    def forward(self, x):
        x = x + self.drop(self.attend(self.norm1(x)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, seq, vocab, dropout):
        super().__init__()
        self.dropout = dropout
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(seq, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                into_residual = name.endswith(("attention_out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if into_residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def main():
    o = parser_of("GPT-2 training steps with PyTorch, driven over standard input",
                  layers=12, hidden=768, heads=12, seq=1024, vocab=50257).parse_args()
    stages = {"import": peak_rss()}
    begin(o)
    model = Gpt2(o.layers, o.hidden, o.heads, o.seq, o.vocab, o.dropout)
    h = o.hidden
    serve_language_model(o, model, stages, 6 * (12 * o.layers * h * h + o.vocab * h) + 6 * o.layers * h * o.seq)


if __name__ == "__main__":
    main()
