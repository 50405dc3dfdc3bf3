"""The PyTorch side of bench/train_bert: full BERT steps (training_steps.py) on one fixed batch of random tokens whose
lengths are given: masked tokens and sentence order, or with --spans 1 the beginnings and ends of answers, as SQuAD has.

Only the masked tokens go through the output projection, as in the original BERT. Lengths: "full" needs no mask;
"mixed" is padded to the longest with a mask (--padding padded), or every sequence is a micro-batch of its own without
padding or mask (--padding alone).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

from training_steps import begin, parser_of, peak_rss, serve


class Block(nn.Module):
    def __init__(self, hidden, heads, dropout, post):
        super().__init__()
        self.heads, self.dropout, self.post = heads, dropout, post
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.attention_out = nn.Linear(hidden, hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def attend(self, x, mask):
        batch, seq, hidden = x.shape
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(hidden, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0)
        return self.attention_out(y.transpose(1, 2).reshape(batch, seq, hidden))

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x, mask):
        if self.post:
            x = self.norm1(x + self.drop(self.attend(x, mask)))
            return self.norm2(x + self.drop(self.mlp(x)))
        x = x + self.drop(self.attend(self.norm1(x), mask))
        return x + self.drop(self.mlp(self.norm2(x)))


class Bert(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.dropout, self.post = o.dropout, o.post
        self.tokens = nn.Embedding(o.vocab, o.hidden)
        self.positions = nn.Embedding(o.seq, o.hidden)
        self.types = nn.Embedding(2, o.hidden)
        self.blocks = nn.ModuleList(Block(o.hidden, o.heads, o.dropout, o.post) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.hidden)
        self.pooler = nn.Linear(o.hidden, o.hidden)
        self.transform = nn.Linear(o.hidden, o.hidden)
        self.transform_norm = nn.LayerNorm(o.hidden)
        self.output_bias = nn.Parameter(torch.zeros(o.vocab))
        self.order = nn.Linear(o.hidden, 2)
        self.spans = nn.Linear(o.hidden, 2) if o.spans else None
        if o.spans:  # which has no other heads
            del self.pooler, self.transform, self.transform_norm, self.output_bias, self.order

    def forward(self, ids, types, mask, rows, targets, labels):
        """The sums of the losses of tokens and of sequences."""
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device)) + self.types(types)
        x = F.dropout(self.norm(x) if self.post else x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x, mask)
        if not self.post:
            x = self.norm(x)
        if self.spans is not None:
            starts, ends = self.spans(x).unbind(-1)
            sums = F.cross_entropy(starts, labels[0], reduction="sum") + F.cross_entropy(ends, labels[1], reduction="sum")
            return sums.detach() * 0, sums / 2
        masked = self.transform_norm(F.gelu(self.transform(x.flatten(0, 1)[rows])))
        tokens = F.cross_entropy(F.linear(masked, self.tokens.weight, self.output_bias), targets, reduction="sum")
        pooled = torch.tanh(self.pooler(x[:, 0]))
        return tokens, F.cross_entropy(self.order(pooled), labels, reduction="sum")


class MicroBatch:
    def __init__(self, o, lengths):
        longest = max(lengths)
        shape = (len(lengths), longest)
        padded = torch.arange(longest) >= torch.tensor(lengths)[:, None]
        self.ids = torch.randint(o.vocab, shape)
        self.types = torch.randint(2, shape)
        self.mask = ~padded[:, None, None, :] if padded.any() else None
        rows = [sequence * longest + row for sequence, length in enumerate(lengths)
                for row in torch.randperm(length)[: round(0.15 * length)].tolist()]
        self.rows = torch.tensor(rows)
        self.targets = torch.randint(o.vocab, (len(rows),))
        self.labels = torch.randint(2, (len(lengths),))
        if o.spans:
            self.labels = torch.stack([torch.tensor([torch.randint(length, ()) for length in lengths]) for _ in range(2)])

    def inputs(self):
        return self.ids, self.types, self.mask, self.rows, self.targets, self.labels


def main():
    parser = parser_of("BERT training steps with PyTorch, driven over standard input",
                       layers=12, hidden=768, heads=12, seq=512, vocab=30522, post=0, spans=0)
    parser.add_argument("--lengths", help="of the batch's sequences; left out: all have --seq tokens")
    parser.add_argument("--padding", choices=["padded", "alone"], default="padded")
    o = parser.parse_args()
    stages = {"import": peak_rss()}
    begin(o)
    model = Bert(o)
    lengths = [int(length) for length in o.lengths.split(",")] if o.lengths else [o.seq] * o.batch
    groups = [[length] for length in lengths] if o.padding == "alone" else [lengths]
    batches = [MicroBatch(o, group) for group in groups]
    targets = sum(len(batch.targets) for batch in batches)

    def backward(run):
        total = 0
        for batch in batches:
            tokens, order = run(*batch.inputs())
            loss = tokens / targets + order / len(lengths)
            loss.backward()
            total = total + loss.detach()
        return total

    serve(o, model, backward, stages, tokens_per_step=sum(lengths))


if __name__ == "__main__":
    main()
